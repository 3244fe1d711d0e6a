"""Make the pictures of the documentation that karat draws itself.

    python examples/maintenance/make_images.py

Writes `docs/images/chunk-sizes.svg`, the curve of examples/chunk_sizes.py: recall over the tokens
of the context, for chunks of three sizes. The same sources give the same bytes.
"""

import runpy
import tempfile
from pathlib import Path

from karat.cli import cli

ROOT = Path(__file__).resolve().parents[2]
IMAGE = ROOT / "docs" / "images" / "chunk-sizes.svg"
CHART = "curve recall/spans over tokens"


def main(image: Path = IMAGE) -> None:
    """Measure the example again and draw its curve."""
    example = runpy.run_path(str(ROOT / "examples" / "chunk_sizes.py"))
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "saved"
        example["main"]().save(saved)
        arguments = ["report", str(saved), "--plot", str(image), "--chart", CHART]
        cli(arguments, standalone_mode=False)


if __name__ == "__main__":
    main()
