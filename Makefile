# Two commands: make demo, make test. Each makes .venv first, once.
.DELETE_ON_ERROR:
.PHONY: demo test install clean

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

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

# A model file as it lies in a package of PyPI, by other authors, unchanged: fetched, not kept here.
DEMO := out/demo
DEMO_PACKAGE := vit-pytorch==1.26.11
# what the original imports besides torch; the converted file does without it
DEMO_NEEDS := einops==0.8.2
DEMO_FILE := vit_pytorch/simple_vit.py
DEMO_SOURCE := $(DEMO)/torch/$(notdir $(DEMO_FILE))
DEMO_BUILD := SimpleViT(image_size=32, patch_size=8, num_classes=10, dim=64, depth=2, heads=4, mlp_dim=128)
DEMO_INPUT := 2x3x32x32
TORCH2MS := $(BIN)/torch2ms

# Exit status 1 of convert says that something is flagged; what was converted is verified all the same.
demo: $(STAMP) $(DEMO_SOURCE)
	@echo "== convert $(DEMO_FILE) of $(DEMO_PACKAGE)"
	@$(TORCH2MS) convert $(DEMO_SOURCE) -o $(DEMO)/mindspore --force || [ $$? -eq 1 ]
	@echo "== verify every Cell, in PyNative and Graph mode"
	@$(TORCH2MS) verify $(DEMO)/mindspore --build '$(DEMO_BUILD)' --input '$(DEMO_INPUT)'; \
	status=$$?; \
	$(TORCH2MS) report $(DEMO)/mindspore -o $(DEMO)/report.html && \
	echo "== the report: $(CURDIR)/$(DEMO)/report.html" && exit $$status

$(DEMO_SOURCE): | $(STAMP)
	@rm -rf $(DEMO)/package
	@mkdir -p $(dir $@)
	$(BIN)/python -m pip install -q "$(DEMO_NEEDS)"
	$(BIN)/python -m pip install -q --no-deps --no-compile --target $(DEMO)/package "$(DEMO_PACKAGE)"
	@cp $(DEMO)/package/$(DEMO_FILE) $@.part && mv $@.part $@

install: $(STAMP)

# The stamp is the last step: an interrupted run is taken up again, a complete one is not repeated.
$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.10, 3.11 or 3.12 is needed: make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c constraints.txt -e ".[verify,dev]"
	@touch $@

clean:
	rm -rf out build dist
