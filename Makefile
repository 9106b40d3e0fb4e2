# make demo: environment, install, and a release of the bundled real table.
# make test: lint, types, the whole test suite.
# Both need nothing but Python 3.11 or newer (name another one by PYTHON=...).

.DEFAULT_GOAL := help
.PHONY: help demo test lint types pytest benchmarks clean

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	if $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then echo $$p; break; fi; done)
VENV := .venv
BIN := $(VENV)/bin
SPECIFICATION := examples/randhie.yaml
RELEASE := out/demo

help:
	@sed -n '1,3s/^# //p' Makefile

$(BIN)/python:
	@if [ -z "$(PYTHON)" ]; then echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; fi
	$(PYTHON) -m venv $(VENV)

# What is installed is the tree itself, so that a change in it needs no new installation.
$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

# Dependency groups came with pip 25.1.
$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group dev
	@touch $@ $(VENV)/.installed

# --force replaces an earlier release and refuses to touch any other folder.
demo: $(VENV)/.installed
	@mkdir -p $(dir $(RELEASE))
	$(BIN)/matrixdp release $(SPECIFICATION) --out $(RELEASE) --force

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

pytest: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n 2

test: lint types pytest

benchmarks: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/run.py

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
