# make demo: environment, install, and a release of the bundled real table.
# make test: lint, types, the cheap benchmarks again, the whole test suite.
# make check: lint, types, and the tests that are not slow.
# make versions: the tests of `check` with the lowest and the newest versions, on each Python from 3.11 on.
# make coverage: the tests again, with the lines that they run; fails below the share in pyproject.toml.
# make machines: lint, types, and evidence and tests with the kernels of other processors (KINDS="Haswell Prescott").
# make mutants, make mutation: whether tests find named faults, and a sample of small changes.
# make audit: twenty times the samples and the random plans of the audit in `make test`.
# make faults: 10,000 faults while a ledger is written.
# make neighbours: every reader against one hostile record more, each record alone.
# make fuzz: coverage-guided fuzzing of everything that reads (CASES=, SECONDS= for each target; TARGETS=a,b).
# make lock: constraints.txt anew, with today's newest versions.
# make site: the documentation as a site, in out/site; make notebook: the tutorial as a notebook.
# All need nothing but Python 3.11 or newer (name another one by PYTHON=...).

.DEFAULT_GOAL := help
.PHONY: help demo test check lint types pytest versions coverage machines mutants mutation faults audit neighbours fuzz lock evidence benchmarks site notebook clean

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	if $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then echo $$p; break; fi; done)
# What tests start as a process of its own does not compile the package each time.
unexport PYTHONDONTWRITEBYTECODE
VENV := .venv
BIN := $(VENV)/bin
SPECIFICATION := examples/randhie.yaml
RELEASE := out/demo
PIP := $(BIN)/python -m pip --disable-pip-version-check
#: The versions that the tests were last run with; CONSTRAINTS= takes the newest.
CONSTRAINTS ?= --constraint constraints.txt

help:
	@sed -n '1,13s/^# //p' Makefile

$(BIN)/python:
	@if [ -z "$(PYTHON)" ]; then echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; fi
	$(PYTHON) -m venv $(VENV)

# What is installed is the tree itself, so that a change in it needs no new installation.
$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --quiet --editable . $(CONSTRAINTS)
	@touch $@

# Dependency groups came with pip 25.1.
$(VENV)/.installed-%: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --quiet --upgrade "pip>=25.1"
	$(PIP) install --quiet --editable . --group $* $(CONSTRAINTS)
	@touch $@ $(VENV)/.installed

# --force replaces an earlier release and refuses to touch any other folder.
demo: $(VENV)/.installed
	@mkdir -p $(dir $(RELEASE))
	$(BIN)/matrixdp release $(SPECIFICATION) --out $(RELEASE) --force

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.installed-dev
	$(BIN)/mypy

pytest: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n 2

test: lint types evidence pytest

coverage: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n 2 --cov=matrixdp --cov-report=term:skip-covered

check: lint types
	$(BIN)/python -m pytest -n 2 -m "not slow"

versions:
	.ci/versions

machines: lint types
	$(BIN)/python .ci/machines $(KINDS)

# Does a test find each named fault? And how many of a sample of small changes?
mutants: $(VENV)/.installed-dev
	$(BIN)/python tests/mutations/named.py

mutation: $(VENV)/.installed-dev
	$(PIP) install --quiet --group mutation
	nice $(BIN)/python tests/mutations/sample.py

# AUDIT= says how many times what is in the tests.
AUDIT ?= 20
audit: $(VENV)/.installed-dev
	MATRIXDP_AUDIT=$(AUDIT) $(BIN)/python -m pytest tests/audit

CASES ?= 100000
SECONDS ?= 600
neighbours: $(VENV)/.installed-dev
	MATRIXDP_TOGETHER=1 $(BIN)/python -m pytest -q tests/sources/test_neighbours.py

fuzz: $(VENV)/.installed-dev
	$(PIP) install --quiet --group fuzz
	nice $(BIN)/python -m tests.fuzz.run --cases $(CASES) --seconds $(SECONDS) $(if $(TARGETS),--targets $(TARGETS))

# What pip would choose today, as names and versions only.
lock: $(VENV)/.installed-dev
	$(PIP) install --dry-run --ignore-installed --quiet --report - --editable . --group dev | $(BIN)/python .ci/pins.py > constraints.new
	mv constraints.new constraints.txt

faults: $(VENV)/.installed-dev
	$(BIN)/python -m tests.ledger.faults 10000
	MATRIXDP_STRIDE=1 $(BIN)/python -m pytest tests/release/test_ledger_recovery.py tests/release/test_series.py

# Are the figures that are cheap to measure still those of docs/benchmarks/results.json?
evidence: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/run.py --quick 2>/dev/null

benchmarks: $(VENV)/.installed-dev
	status=0; $(BIN)/python benchmarks/run.py || status=$$?; \
	if [ $$status -lt 128 ]; then $(BIN)/python benchmarks/run.py --texts; fi; exit $$status

# Warnings are errors: a link that leads nowhere, a docstring that is not well formed, a page in no index.
site: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs out/site

notebook: | $(BIN)/python
	$(BIN)/python docs/notebook.py

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
