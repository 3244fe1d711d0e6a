"""Dates in texts, whatever their form: `April 21, 1960`, `21 April 1960`, `1960-04-21`.

Months are known by their names in English, German, French, Spanish, Italian, Portuguese and Dutch.
A date of numbers only is read where it can be read in one way: `1960-04-21`, `21.04.1960`,
`21/04/1960`, `04/21/1960`, `1960年4月21日`, but not `04/05/1960`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar janvier enero gennaio janeiro januari",
            "february feb februar février fevrier febrero febbraio fevereiro februari",
            "march mar märz marz mars marzo março marco maart",
            "april apr avril abril aprile",
            "may mai mayo maggio maio mei",
            "june jun juni juin junio giugno junho",
            "july jul juli juillet julio luglio julho",
            "august aug août aout agosto augustus",
            "september sep sept septembre septiembre settembre setembro",
            "october oct oktober okt octobre octubre ottobre outubro",
            "november nov novembre noviembre novembro",
            "december dec dezember dez décembre decembre diciembre dicembre dezembro",
        ),
        start=1,
    )
    for name in names.split()
}
_MONTH = rf"(?P<{{}}>{'|'.join(sorted(MONTHS, key=len, reverse=True))})\.?"
_DAY = r"(?P<{}>[0-3]?\d)(?:st|nd|rd|th|er|º|\.)?"
_OF = r"(?:of\s+|de\s+|del\s+)?"
_FORMS = (
    rf"{_DAY.format('d1')}\s+{_OF}{_MONTH.format('m1')}\s?,?\s+{_OF}(?P<y1>\d{{4}})",
    rf"{_MONTH.format('m2')}\s+{_DAY.format('d2')}\s?,?\s+(?P<y2>\d{{4}})",
    r"(?P<y3>\d{4})[-/.](?P<m3>[01]?\d)[-/.](?P<d3>[0-3]?\d)",
    r"(?P<d4>[0-3]?\d)\.\s?(?P<m4>[01]?\d)\.\s?(?P<y4>\d{4})",
    r"(?P<a5>[0-3]?\d)[-/](?P<b5>[0-3]?\d)[-/](?P<y5>\d{4})",
    r"(?P<y6>\d{4})\s?年(?:\s?(?P<m6>[01]?\d)\s?月(?:\s?(?P<d6>[0-3]?\d)\s?日)?)?",
    rf"{_MONTH.format('m7')}\s?,?\s+{_OF}(?P<y7>\d{{4}})",
    rf"{_MONTH.format('m8')}\s+{_DAY.format('d8')}",
    rf"{_DAY.format('d9')}\s+{_OF}{_MONTH.format('m9')}",
)
DATE = re.compile(rf"(?<!\w)(?<!\d[.,/-])(?:{'|'.join(_FORMS)})(?![^\W年月日])", re.IGNORECASE)
# of ASCII and of other texts; a first digit by itself is searched for twice as quickly
_DIGITS = {True: re.compile(r"[0-9][0-9]*"), False: re.compile(r"\d\d*")}
_WORD_BEFORE = re.compile(r"([^\W\d_]{3,10})\.?\s?,?\s+(?:(?:of|del?)\s+)?$")
_WORD_BEHIND = re.compile(
    r"(?:st|nd|rd|th|er|º)?\s+(?:(?:of|del?)\s+)?([^\W\d_年月日]+)", re.IGNORECASE
)
_SEPARATORS = ("-", "/", ".")
_LINKING = frozenset({"of", "de"})  # between a day and its month; or `del`
_FIRST = frozenset(name[:3] for name in MONTHS)
_LAST = frozenset(name[-3:] for name in MONTHS) | {"del"}
_ORDINAL = frozenset({"st", "nd", "rd", "th", "er"})
_REACH = 20  # characters from the beginning of a month to the number behind it


def find_dates(text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Go through the dates of a text, with a word for each that is the same in all forms.

    >>> [word for _, word in find_dates("21st April 1960 – May 2, then 2021/12/24, not 4/5/1960")]
    ['y1960m04d21', 'm05d02', 'y2021m12d24']
    """
    end = 0
    for digits in _DIGITS[text.isascii()].finditer(text):
        number, behind = digits.span()
        if number < end:  # part of the date before
            continue
        if not (_may_follow(text, number) or _may_begin(text, behind)):
            continue
        for start in _starts(text, digits, end):
            match = DATE.match(text, start)
            if match and (word := _word(match)):
                yield match, word
                end = match.end()
                break


def _may_follow(text: str, number: int) -> bool:
    """Tell quickly whether a month may stand before a number: by its last letters."""
    if not text[number - 1 : number].isspace():
        return False
    last = text[max(0, number - _REACH) : number].rstrip(" .,\t\n\r\xa0")[-3:].casefold()[-3:]
    return last in _LAST or last[-2:] in _LINKING or not last[-1:].isalpha()


def _may_begin(text: str, behind: int) -> bool:
    """Tell quickly whether a date may begin with the number that ends here."""
    after = text[behind : behind + 4].casefold()
    if after[:1].isspace():
        month = after[1:4]
        return month in _FIRST or month[:2] in _LINKING or month[:1].isspace() or "年" in after
    return after[:1] in _SEPARATORS or after[:2] in _ORDINAL or after[:1] == "º" or "年" in after


def _starts(text: str, digits: re.Match[str], end: int) -> Iterator[int]:
    """Say where a date with this number can begin: at the month before it, or with it.

    Most numbers are no dates, and what stands beside them shows it soon.
    """
    number, behind = digits.span()
    if text[number - 1 : number].isspace():
        first = max(end, number - _REACH)
        before = _WORD_BEFORE.search(text[first:number])
        if before and before[1].casefold() in MONTHS:
            yield first + before.start()
    after = text[behind : behind + 2]
    if after[:1] not in _SEPARATORS and "年" not in after:
        month = _WORD_BEHIND.match(text, behind)
        if month is None or month[1].casefold() not in MONTHS:
            return
    yield number


def parts_of(word: str) -> list[str]:
    """Return what else a date says: its month of the year, its day of the year, its year.

    >>> parts_of("y1960m04d21"), parts_of("y1960m04"), parts_of("m04d21")
    (['y1960m04', 'm04d21', '1960'], ['1960'], [])
    """
    found = re.fullmatch(r"y(\d{4})m(\d\d)(?:d(\d\d))?", word)
    if found is None:
        return []
    year, month, day = found.groups()
    return [f"y{year}m{month}", f"m{month}d{day}", year] if day else [year]


def _word(match: re.Match[str]) -> str:
    """Return the word of a date, or nothing if there is no such day."""
    given = {name[0]: value for name, value in match.groupdict().items() if value}
    if "a" in given:
        first, second = int(given["a"]), int(given["b"])
        if (first > 12) == (second > 12):  # either could be the month, or none
            return ""
        given["d"], given["m"] = (str(first), str(second))[:: 1 if first > 12 else -1]
    name = given.get("m", "").casefold()
    month = MONTHS.get(name, 0) or int(name or 0)
    day = int(given.get("d", 0))
    if month > 12 or day > 31 or ("d" in given and not day) or ("m" in given and not month):
        return ""
    year = given.get("y", "")
    if not month:
        return year
    return (f"y{year}" if year else "") + f"m{month:02}" + (f"d{day:02}" if day else "")
