# `make up` runs everything, `make test` proves everything; both create what they need.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
DEVSTAMP := $(VENV)/.installed-dev

# The tests start the program some hundred times. Without bytecode files every start would compile it again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install up test lint bench docs dist clean

install: $(STAMP)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Icefall needs Python 3.11 or newer; set PYTHON=..." >&2; exit 1; }
	@echo "Creating $(VENV) (once)"
	@$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml | $(BIN)/python
	@echo "Installing Icefall and what it needs into $(VENV): about half a minute, from the package index"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(DEVSTAMP): $(STAMP)
	@echo "Installing the tools of developers into $(VENV): about a minute"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev
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

# A wheel and a source archive in dist/. `pipx run --spec dist/<the wheel> icefall up` runs it without this checkout.
dist: $(DEVSTAMP)
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist

clean:
	rm -rf $(VENV) dist .counterparts .mypy_cache .ruff_cache .hypothesis .coverage*
