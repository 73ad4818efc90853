# `make up` runs everything, `make test` proves everything; both create what they need.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
DEVSTAMP := $(VENV)/.installed-dev

# The tests start the program some hundred times. Without bytecode files every start would compile it again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install up test lint bench docs clean

install: $(STAMP)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Icefall needs Python 3.11 or newer; set PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(DEVSTAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev
	@touch $@

up: $(STAMP)
	@exec $(BIN)/icefall up $(ARGS)

lint: $(DEVSTAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest --numprocesses=auto --dist=loadfile --no-loadscope-reorder --cov --cov-report=term $(ARGS)

bench: $(DEVSTAMP)
	$(BIN)/python -m bench $(ARGS)

docs: $(STAMP)
	$(BIN)/python -m icefall.api.docs

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis .coverage*
