#!/usr/bin/env bash
# Try a built package as users install it: without extras, without the sources, in a folder of its own.
#
#     .github/installed.sh dist/findwell-*.whl [PYTHON]
set -euo pipefail
package=$(realpath "$1")
python=${2:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

"$python" -m venv env
env/bin/python -m pip install --quiet --disable-pip-version-check "$package"
export PATH="$folder/env/bin:$PATH" PYTHONWARNINGS=error PYTHONSAFEPATH=1 FINDWELL_CACHE_DIR="$folder/cache"
unset PYTHONPATH

say() { printf '\n== %s\n' "$*"; }

say "only the core is there"
python -c 'import importlib.util as u; found = [n for n in ("httpx", "scipy", "rapidfuzz", "starlette", "onnxruntime") if u.find_spec(n)]; assert not found, found'
python -c 'import findwell; assert "site-packages" in findwell.__file__, findwell.__file__; print(findwell.__version__)'

say "help of every command"
findwell --help
for command in $(python -c 'from findwell.cli import COMMANDS; print(*COMMANDS)'); do
  findwell "$command" --help > /dev/null
done

say "the demo, its files, a score, a comparison, a report"
findwell demo
findwell demo --files demo > /dev/null
findwell check demo/bm25.trec --gold demo/questions.jsonl
findwell score demo/bm25.trec demo/minilm.trec --gold demo/questions.jsonl --corpus demo/passages.jsonl --save monday > scores.txt
grep -q '0.814' scores.txt
findwell compare demo/bm25.trec demo/minilm.trec --gold demo/questions.jsonl -m recall@5 --no-regression recall@5
findwell explain monday --system bm25 -q q02 -m AP > /dev/null
findwell skill inputs | grep -q "What findwell reads"
findwell report monday -o report.html
head -c 15 report.html | grep -qi '<!doctype html>'
python -c 'import findwell; assert findwell.evaluate({"q": ["a", "b"]}, {"q": ["b"]}, ["RR"])["RR"] == 0.5'
python -m findwell --version

say "every module can be imported, or names the extra that it needs"
python - <<'END'
import importlib
import pkgutil

import findwell

EXTRAS = {"httpx", "jinja2", "starlette", "uvicorn", "scipy", "rapidfuzz", "sentencex", "onnxruntime", "opentelemetry", "pytest"}
for module in pkgutil.walk_packages(findwell.__path__, "findwell."):
    if module.name == "findwell.__main__":
        continue
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        assert error.name in EXTRAS, f"{module.name} needs {error.name}"
        print(f"{module.name} needs {error.name}")
END

say "what needs an extra says which"
refused() {  # command…, then the words that the message must have
  local words=${*: -1}
  set +e
  "${@:1:$#-1}" > out.txt 2> err.txt
  local code=$?
  set -e
  if [ "$code" -ne 2 ] || ! grep -q -- "$words" err.txt || grep -q Traceback err.txt; then
    echo "exit code $code of: ${*:1:$#-1}"; cat err.txt; exit 1
  fi
  tail -1 err.txt
}
sample='{"query": "q", "question": "Who?", "retrieved": ["It was Ada."], "gold": ["Ada it was."], "reference": "Ada."}'
echo "$sample" > samples.jsonl
refused findwell score samples.jsonl --by rouge "\.\[text\]"
refused findwell score samples.jsonl --by semantic "\.\[semantic\]"
refused findwell score samples.jsonl -m context_precision --judge openai:m -J base_url=http://localhost:9/v1 "\.\[judge\]"
refused findwell compare demo/bm25.trec demo/minilm.trec --gold demo/questions.jsonl --test t "\.\[stats\]"
refused findwell report monday --plot forest.png "\.\[report\]"
refused findwell view monday "\.\[web\]"
say "done"
