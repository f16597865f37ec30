# One command for each thing people do here; CI runs the same ones (.ci/run).
# Needs Python 3.11+ and make. The real stack also needs a JDK 17, Maven and Go: `memsluice stack doctor` names what is missing.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

UV_VERSION := 0.13.8
UV := $(shell uv --version >/dev/null 2>&1 && echo uv || echo .uv/bin/uv)
PYTHON ?= python3
BIN := .venv/bin
export UV_HTTP_TIMEOUT ?= 300

# Real records for figures: a folder with data/ and bench/. See docs/figures.md.
export MEMSLUICE_DATA ?= $(wildcard ../shared)

# Without its cache of compiled modules Python compiles torch and Faust anew in every process, for 20 seconds each.
unexport PYTHONDONTWRITEBYTECODE

# What is given to make is for its own recipe: a test that runs `make demo` must not find the ARGS of `make test` there.
MAKEOVERRIDES =
unexport ARGS NAME STACK

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

.uv/bin/uv:
	$(PYTHON) -m venv .uv
	.uv/bin/pip install --quiet --disable-pip-version-check "uv==$(UV_VERSION)"

# The stamp lies inside the environment, so that removing .venv/ is enough to start over.
.venv/.synced: pyproject.toml uv.lock | $(filter .uv/bin/uv,$(UV))
	$(UV) sync --locked
	@echo "Compiling the detectors, once: half a minute"
	@$(BIN)/python -c "import memsluice.stages.screen"
	@touch $@

.PHONY: install
install: .venv/.synced ## Make the environment in .venv/ from uv.lock

.PHONY: demo
demo: install ## See it work: embedded, or on the real stack with STACK=1
	@$(BIN)/memsluice demo $(if $(STACK),--stack) $(ARGS)

.PHONY: lint
lint: install ## Check style and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	@$(BIN)/python -m memsluice_lab.figures --check .

.PHONY: test
test: install ## Run everything that CI runs, the real stack included where it can run; with ARGS, only pytest
	@scripts/test $(ARGS)

.PHONY: soak
soak: install ## Simulate a million histories, or so many: ARGS="--histories 50000"; goes on where it was stopped
	@$(BIN)/python -m memsluice_lab.simulation --soak $(ARGS)

.PHONY: figure
figure: install ## Measure one figure: make figure NAME=core_decisions_per_s
	@$(if $(NAME),,echo "usage: make figure NAME=…; there are:"; $(BIN)/python -m memsluice_lab.figures --list; exit 2)
	@$(BIN)/python -m memsluice_lab.figures "$(NAME)" $(ARGS)

.PHONY: figures
figures: install ## Measure all figures and write docs/figures.md; ARGS=--stale: those whose code changed, and goes on
	@$(BIN)/python -m memsluice_lab.figures --all --record . $(ARGS)

.PHONY: profile
profile: install ## Where the processor's time goes at saturation: tables, and flame graphs in profile/ (minutes)
	@$(BIN)/python -m memsluice_lab.profile $(ARGS)

.PHONY: docs
docs: install ## Write the generated pages of docs/
	@$(BIN)/python scripts/generate_docs.py
	@$(BIN)/python -m memsluice_lab.figures --page .

.PHONY: site
site: install ## Write the documentation as a site to site/
	$(BIN)/mkdocs build --strict --quiet

.PHONY: clean
clean: ## Remove what make made; the downloads of the stack stay in ~/.cache/memsluice
	rm -rf site profile .venv .uv .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
