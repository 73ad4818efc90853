# `make up` runs everything, `make test` proves everything; both create what they need.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
DEVSTAMP := $(VENV)/.installed-dev
# Two processes more than there are cores: tests wait for servers now and then, and each process makes what its tests share anew.
JOBS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 2)')
PYTEST = $(BIN)/python -m pytest --numprocesses=$(JOBS) --dist=loadfile --no-loadscope-reorder

# The tests start the program some hundred times. Without bytecode files every start would compile it again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install up test retest coverage lint bench docs lock dist container clean

install: $(STAMP)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Icefall needs Python 3.11 or newer; set PYTHON=..." >&2; exit 1; }
	@echo "Creating $(VENV) (once)"
	@$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml | $(BIN)/python
	@echo "Installing Icefall and what it needs into $(VENV): about half a minute, from the package index"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

# Tests and CI run with exactly these files, whatever was released since. The lock names all of them: pip need not look
# for what they depend on, and refuses `coverage[toml]` next to a pin of `coverage` as soon as there is a newer release.
$(DEVSTAMP): requirements.lock pyproject.toml | $(BIN)/python
	@echo "Installing what requirements.lock names into $(VENV): a minute or two"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --requirement requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(STAMP) $@

up: $(STAMP)
	@exec $(BIN)/icefall up $(ARGS)

lint: $(DEVSTAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# mypy takes one core for half a minute where it has no cache, so it runs beside the tests and reports after them. Tests
# that were never compiled are compiled once meanwhile, else each test process would do so. What was skipped is listed.
test: $(DEVSTAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@mkdir -p .mypy_cache
	@$(BIN)/mypy > .mypy_cache/report 2>&1 & types=$$!; \
		test -d tests/__pycache__ || $(BIN)/python -m pytest --collect-only -q > /dev/null; \
		$(PYTEST) -rfEs $(ARGS); tests=$$?; \
		wait $$types; types=$$?; cat .mypy_cache/report; exit $$((tests | types))

# The tests that failed in the last run, again and one at a time. More than five are not tried.
retest: lint
	@$(BIN)/python -c 'import json, sys; names = json.load(open(".pytest_cache/v/cache/lastfailed")); \
		print("Failed beside other tests, run again alone:", *names, sep="\n  "); sys.exit(not 0 < len(names) <= 5)'
	$(BIN)/python -m pytest --last-failed --last-failed-no-failures=none -v

# Tracing every line makes the tests half as slow again, so it is not part of `make test`.
coverage: $(DEVSTAMP)
	$(PYTEST) --cov --cov-report=term $(ARGS)

bench: $(DEVSTAMP)
	$(BIN)/python -m bench $(ARGS)

docs: $(STAMP)
	$(BIN)/python -m icefall.api.describing.docs
	$(BIN)/python -m icefall.db.schema_docs

# Adds what pyproject.toml names anew and keeps the other versions; `make lock ARGS=--upgrade` takes the newest of all.
lock: | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "uv>=0.9,<1"
	$(BIN)/uv pip compile --quiet --universal --python-version=3.11 --generate-hashes --no-emit-index-url --no-header \
		--group=dev --output-file=requirements.lock pyproject.toml $(ARGS)

# A wheel and a source archive in dist/. `pipx run --spec dist/<the wheel> icefall up` runs it without this checkout.
dist: $(DEVSTAMP)
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist

# The image `icefall`, with docker or, where CONTAINER=podman, with that.
CONTAINER ?= docker
container:
	$(CONTAINER) build --file deploy/container/Containerfile --tag icefall .

clean:
	rm -rf $(VENV) dist .counterparts .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage*
