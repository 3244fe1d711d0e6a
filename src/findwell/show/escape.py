"""Texts of others, written so that no program that reads them obeys them.

Ids, questions, chunks and names of systems come from outside: they must not steer a terminal, end
an element of a page or a row of a table, or hide what they say.
"""

from __future__ import annotations

import json
import re

# C0, DEL and C1, line separators, and what turns the direction of writing
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_LINE_END = re.compile(r"\r\n?")
_CONTROL_IN_LINES = re.compile(rf"(?![\t\n]){_CONTROL.pattern}")
_SURROGATE = re.compile("[\ud800-\udfff]")  # half of a letter, which no file can hold
_NOT_XML = re.compile("[\ud800-\udfff\ufffe\uffff]")  # what `printable` leaves and XML 1.0 forbids
_LATEX = str.maketrans(
    {mark: f"\\{mark}" for mark in "{}$&#%_"}
    | {
        "\\": r"\textbackslash{}",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': r"\textquotedbl{}",
        "†": r"$\dagger$",
        "‡": r"$\ddagger$",
    }
)
# what could end a script element, or a line of JavaScript
_SCRIPT = {ord(letter): f"\\u{ord(letter):04x}" for letter in ("<", ">", "&", "\u2028", "\u2029")}


def printable(text: str) -> str:
    """Write control characters as escapes: an id must not steer the terminal.

    >>> print(printable("d\x1b[31m1"))
    d\\x1b[31m1
    """
    return _CONTROL.sub(_written_out, text)


def _written_out(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def multiline(text: str) -> str:
    r"""Write control characters as escapes, but for tabs and line breaks.

    >>> multiline("a\u202eb\n\x1b[0m")
    'a\\u202eb\n\\x1b[0m'
    """
    whole = _SURROGATE.sub("\ufffd", _LINE_END.sub("\n", text))
    return _CONTROL_IN_LINES.sub(_written_out, whole)


def same_length(text: str) -> str:
    r"""Replace each control character by a sign, except tabs and line breaks.

    Every character stays at its place, so that offsets are those of the text as it is.

    >>> same_length("a\x1b[31m\r\n\u202eb")
    'a�[31m\u200b\n�b'
    """
    whole = _SURROGATE.sub("\ufffd", text).replace("\r\n", "\u200b\n").replace("\r", "\n")
    return _CONTROL_IN_LINES.sub("\ufffd", whole)


def visible(text: str) -> str:
    """Return text that XML and HTML can hold, before its marks are escaped.

    >>> visible("a\x1b b\uffff")
    'a\\\\x1b b\ufffd'
    """
    return _NOT_XML.sub("\ufffd", printable(text))


def xml(text: str) -> str:
    """Return text that is only text, within an element or an attribute of XML, SVG or HTML.

    >>> xml('<a "b">')
    '&lt;a &quot;b&quot;&gt;'
    """
    from html import escape  # noqa: PLC0415 - its table of entities is large

    return escape(visible(text))


def markdown(text: str) -> str:
    """Return text that is neither Markdown nor HTML.

    >>> print(markdown("*a*|<b>"))
    \\*a\\*\\|\\<b\\>
    """
    return re.sub(r"([\\`*_|<>\[\]])", r"\\\1", printable(text))


def latex(text: str) -> str:
    r"""Return text that LaTeX prints and obeys nothing in.

    >>> print(latex(r"50% \input{x}_1"))
    50\% \textbackslash{}input\{x\}\_1
    """
    return printable(text).translate(_LATEX)


def script_json(data: object) -> str:
    r"""Return JSON that can stand within a script element, whatever it holds.

    >>> script_json("</script>")
    '"\\u003c/script\\u003e"'
    """
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).translate(
        _SCRIPT
    )
