# Two commands: make demo, make test. Both make .venv first, once.
.DELETE_ON_ERROR:
.PHONY: demo test install clean

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO := out/demo

# MindSpore has wheels for Python 3.10 to 3.12 only.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.10 python3; do \
	$$p -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))' \
	2>/dev/null && echo $$p && break; done)

# On CPUs with AVX-512 the convolutions of MindSpore 2.10 are 30 to 80 times slower without this.
export ONEDNN_MAX_CPU_ISA ?= AVX2

test: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -n 2 -m "not slow"

install: $(STAMP)

# The stamp is the last step: an interrupted run is taken up again, a complete one is not repeated.
$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.10, 3.11 or 3.12 is needed: make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c constraints.txt -e ".[verify,dev]"
	touch $@
