"""Make the pictures of the documentation that findwell draws itself.

    python examples/maintenance/make_images.py

Writes `docs/images/chunk-sizes.svg`, the curve of examples/chunk_sizes.py: recall over the tokens
of the context, for chunks of three sizes; and `learn-curve.svg`, recall at growing cutoffs on the
demo. The same sources give the same bytes.
"""

import runpy
import tempfile
from pathlib import Path

import findwell
from findwell.cli import cli

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"


def main(images: Path = IMAGES) -> None:
    """Measure the examples again and draw their curves."""
    sizes = runpy.run_path(str(ROOT / "examples" / "chunk_sizes.py"))["main"]()
    draw(sizes, images / "chunk-sizes.svg", "curve recall/spans over tokens")
    demo = ROOT / "src" / "findwell" / "demo"
    runs = [demo / "bm25.trec", demo / "minilm.trec"]
    cutoffs = findwell.evaluate(runs, demo / "questions.jsonl", "recall@10")
    draw(cutoffs, images / "learn-curve.svg", "curve recall")


def draw(result: findwell.Result, image: Path, chart: str) -> None:
    """Draw a chart of a result."""
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "saved"
        result.save(saved)
        arguments = ["report", str(saved), "--plot", str(image), "--chart", chart]
        cli(arguments, standalone_mode=False)


if __name__ == "__main__":
    main()
