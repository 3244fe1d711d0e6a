#!/usr/bin/env bash
# Try a built package as users install it: without extras, without the sources, in a folder of its own.
#
#     .github/installed.sh dist/karat-*.whl [PYTHON]
set -euo pipefail
package=$(realpath "$1")
python=${2:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

"$python" -m venv env
env/bin/python -m pip install --quiet --disable-pip-version-check "$package"
export PATH="$folder/env/bin:$PATH" PYTHONWARNINGS=error PYTHONSAFEPATH=1 KARAT_CACHE_DIR="$folder/cache"
unset PYTHONPATH

say() { printf '\n== %s\n' "$*"; }

say "only the core is there"
python -c 'import importlib.util as u; found = [n for n in ("httpx", "scipy", "rapidfuzz", "starlette", "onnxruntime") if u.find_spec(n)]; assert not found, found'
python -c 'import karat; assert "site-packages" in karat.__file__, karat.__file__; print(karat.__version__)'

say "help of every command"
karat --help
for command in $(python -c 'from karat.cli import COMMANDS; print(*COMMANDS)'); do
  karat "$command" --help > /dev/null
done

say "the demo, its files, a score, a comparison, a report"
karat demo
karat demo --files demo > /dev/null
karat check demo/bm25.trec --gold demo/questions.jsonl
karat score demo/bm25.trec demo/minilm.trec --gold demo/questions.jsonl --corpus demo/passages.jsonl --save monday > scores.txt
grep -q '0.8141' scores.txt
karat compare demo/bm25.trec demo/minilm.trec --gold demo/questions.jsonl -m recall@5 --no-regression recall@5
karat explain monday --system bm25 -q q02 -m AP > /dev/null
karat report monday -o report.html
head -c 15 report.html | grep -qi '<!doctype html>'
python -c 'import karat; assert karat.evaluate({"q": ["a", "b"]}, {"q": ["b"]}, ["RR"])["RR"] == 0.5'
python -m karat --version

say "every module can be imported, or names the extra that it needs"
python - <<'END'
import importlib
import pkgutil

import karat

EXTRAS = {"httpx", "jinja2", "starlette", "uvicorn", "scipy", "rapidfuzz", "sentencex", "onnxruntime", "pytest"}
for module in pkgutil.walk_packages(karat.__path__, "karat."):
    if module.name == "karat.__main__":
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
refused karat score samples.jsonl --by rouge "karat\[text\]"
refused karat score samples.jsonl --by semantic "karat\[semantic\]"
refused karat score samples.jsonl -m context_precision --judge openai:m --base-url http://localhost:9/v1 "karat\[judge\]"
refused karat compare demo/bm25.trec demo/minilm.trec --gold demo/questions.jsonl --test t "karat\[stats\]"
refused karat report monday --plot forest.png "karat\[report\]"
refused karat view monday "karat\[web\]"
say "done"
