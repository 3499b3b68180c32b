# `make help` lists the targets. Outside a virtual environment everything is
# installed into .venv; inside one, into that.
.DEFAULT_GOAL := help
SHELL := bash

# The newest Python that the wheels of MLIR exist for.
PYTHON ?= $(firstword $(foreach p,python3 python3.13 python3.12 python3.11 python3.10,\
  $(shell $(p) -c 'import sys; sys.exit(not (3,10) <= sys.version_info < (3,14))' 2>/dev/null && command -v $(p))))
IN_VENV := $(shell $(PYTHON) -c 'import sys; print(int(sys.prefix != sys.base_prefix))' 2>/dev/null)
ifeq ($(IN_VENV),1)
  PY := $(PYTHON)
else
  PY := $(CURDIR)/.venv/bin/python
endif
export PATH := $(dir $(PY)):$(PATH)

# Where `make install` builds; see build-dir in pyproject.toml.
BUILD := build/pip
# A file is one worker's: its fixtures compile models. Slow tests are `make test-slow`.
PYTEST_ARGS ?= -n 2 --dist loadfile -m "not slow and not gpu and not browser and not clients"
LIT_ARGS ?= -sv
PIP := $(PY) -m pip --disable-pip-version-check --quiet

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1\t\2/' | expand -t 14

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "llmc needs Python 3.10 to 3.13 (or PYTHON=/path/to/it)"; exit 1; }
	$(PYTHON) -m venv .venv

# Without build isolation, so that a second install rebuilds only what changed.
.PHONY: install
install: $(if $(filter 1,$(IN_VENV)),,.venv/bin/python) ## Build and install llmc, editable, with what the tests need
	@echo "== installing llmc and its dependencies into $(dir $(PY)) (downloads PyTorch and MLIR, builds the C++: minutes)"
	@$(PIP) install -r tools/requirements-build.txt
	@$(PIP) install --no-build-isolation --editable '.[test]' -C cmake.define.LLMC_BUILD_TESTS=ON

.PHONY: demo
demo: install ## Compile a small model for this machine's CPU and talk to it
	@$(PY) tools/demo.py

.PHONY: test
test: install ## Everything that needs no GPU: lit, C++ and Python tests
	@$(MAKE) --no-print-directory --keep-going run-lit run-cpp run-pytest

.PHONY: test-slow
test-slow: install model ## The tests that take minutes: every family, 405B, SmolLM2
	$(PY) -m pytest -m "slow and not clients"

.PHONY: test-clients
test-clients: install model ## Heavy clients on a server of SmolLM2 (downloads 2 GB into build/clients; needs Node)
	$(PY) -m pytest -m clients test/python/clients

.PHONY: test-page
test-page: install ## The server's page in a headless Chromium (needs one, and playwright)
	$(PIP) install playwright==1.65.2
	$(PY) -m pytest -m browser test/python/server

.PHONY: lit
lit: install run-lit ## The .mlir tests of dialects and passes
.PHONY: cpp-test
cpp-test: install run-cpp ## The C++ unit tests
.PHONY: pytest
pytest: install run-pytest ## The Python tests; PYTEST_ARGS="-k name"
.PHONY: sanitize sanitize-asan sanitize-tsan run-asan run-tsan
sanitize: ## Both of these, one after the other (three minutes on two cores)
	@$(MAKE) --no-print-directory run-asan
	@$(MAKE) --no-print-directory run-tsan
sanitize-asan: run-asan ## The C++ tests of the runtime under address and undefined-behaviour sanitizers
sanitize-tsan: run-tsan ## The same under the thread sanitizer
run-asan run-tsan: run-%:
	cmake --preset $*
	cmake --build --preset $*
	ctest --preset $* -L runtime
.PHONY: gpu-test
gpu-test: install ## The tests that need an NVIDIA GPU
	$(PY) -m pytest test/gpu -m gpu

# The real weights that some tests take, downloaded once.
.PHONY: model
model:
	@$(PY) tools/smollm2.py >/dev/null

# Without the install in front, for `make test`.
.PHONY: run-lit run-cpp run-pytest
run-lit:
	lit $(LIT_ARGS) $(BUILD)/test/lit
run-cpp:
	ctest --test-dir $(BUILD) --output-on-failure -L cpp
run-pytest: model
	$(PY) -m pytest $(PYTEST_ARGS)

.PHONY: lint
lint: $(if $(filter 1,$(IN_VENV)),,.venv/bin/python) ## All checks of style and types; needs a build in build/dev
	@$(PIP) install $(shell sed -n 's/^lint = \[\(.*\)\]/\1/p' pyproject.toml | tr -d ',')
	pre-commit run --all-files

.PHONY: format
format: ## Format Python, C++ and CMake files
	tools/lint/run.sh format

.PHONY: docs
docs: install ## Regenerate docs/reference from the .td files
	cmake --build $(BUILD) --target llmc-docs

.PHONY: clean
clean: ## Remove what was built (not .venv)
	rm -rf build
