"""Models of the library sentence-transformers: a name it knows, or a folder it can read.

The library may download a model that is not on this machine; karat asks it only when told to.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from karat.embeddings.embedder import TextEmbedder, need
from karat.embeddings.files import fingerprint
from karat.errors import EmbeddingError


def transformers_embedder(model: str) -> TextEmbedder:
    """Return the embedder `sentence-transformers:NAME_OR_PATH`.

    A folder is named by a hash of its files; a name is taken to mean the same model for ever. The
    library pads the texts of a batch to one length, so the last digits of a vector may depend on
    its neighbours.
    """
    library = need("sentence_transformers", f"the model {model!r}", "sentence-transformers")
    folder = Path(model).expanduser()
    local = folder.is_dir()
    try:
        encoder: Any = library.SentenceTransformer(str(folder) if local else model)
    except Exception as error:
        raise EmbeddingError(
            f"sentence-transformers could not load the model: {error}", where=model
        ) from error
    name = f"sentence-transformers:{model}"
    if local:
        files = [path for path in folder.rglob("*") if path.is_file()]
        name = f"sentence-transformers:{folder.resolve().name}:{fingerprint(files)}"

    def encode(texts: Sequence[str]) -> Any:  # noqa: ANN401
        return encoder.encode(
            list(texts), convert_to_numpy=True, normalize_embeddings=True, show_progress_bar=False
        )

    return TextEmbedder(name, encode)
