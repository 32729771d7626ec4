# Every target works from a bare clone: it makes .venv, installs what it needs, and runs.
# PYTHON chooses the interpreter (3.11 or newer); pip uses your own index settings.

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
PIP := $(BIN)/python -m pip --disable-pip-version-check
# One file for each set of extras that is installed; older than pyproject.toml, it is installed again.
READY := $(VENV)/installed

# A virtual environment that was moved, half made, or made by a Python that is gone is made afresh.
ifneq ($(shell $(BIN)/python -c 'import pip, sys; print(sys.version_info >= (3, 11))' 2>/dev/null),True)
BROKEN := FORCE
endif

.PHONY: help demo test exhaustive lint mutants shipped fuzz golden stubs wheel docs notebooks gpu bench corpus clean FORCE
.DEFAULT_GOAL := help

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1|/p' $(MAKEFILE_LIST) | while IFS='|' read -r name what; do \
		printf 'make %-11s%s\n' "$$name" "$$what"; done

demo: $(READY)-test ## a GEMM: traced, assembled, run, and compared with numpy (about a minute from a bare clone)
	$(BIN)/python -m ptxdsl demo

test: $(READY)-test ## the quick tier: a few cases of most tests (8 minutes on two cores)
	$(BIN)/python -m pytest -n auto --maxprocesses 8 --dist worksteal

exhaustive: $(READY)-test ## every case of every test (35 minutes on two cores); PART=3/8 for the third of eight parts
	$(BIN)/python -m pytest -n auto --maxprocesses 8 --dist worksteal --exhaustive $(if $(PART),--part $(PART))

lint: $(READY)-lint ## ruff check, ruff format and mypy
	$(BIN)/python -m ruff check
	$(BIN)/python -m ruff format --check
	$(BIN)/python -m mypy

mutants: $(READY)-test ## what the emulator finds in shipped kernels that lack something: docs/mutants.md (half an hour on two cores)
	$(BIN)/python -m tests.mutants

shipped: $(READY)-test ## what ptxas says of kernels of sm_90a that calls of all sizes choose: spills, products in turn (half an hour on two cores)
	$(BIN)/python -m tests.shipped 0 1000

fuzz: $(READY)-test ## random PTX programs under three schedules (SEED=0 COUNT=100; GPU=1 to compare with a GPU)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.fuzz --seed $(or $(SEED),0) --count $(or $(COUNT),100) $(if $(GPU),--gpu)

golden: $(READY)-test ## write the golden PTX files again: look at the difference before you commit it
	PTXDSL_UPDATE_GOLDEN=1 $(BIN)/python -m pytest -n auto --maxprocesses 8 -k golden

stubs: $(READY)-test ## write the stub of pd.ptx again, after a change of the table
	$(BIN)/python -m tests.stubs

wheel: $(READY)-package ## build wheel and sdist, look into them, and use the wheel in an empty environment
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m tests.wheel dist

gpu: $(READY)-test ## the tests that need a GPU
	$(BIN)/python -m pytest --exhaustive -m gpu

bench: $(READY)-test $(READY)-bench ## run the main benchmarks on this GPU; write BENCHMARKS.md again from benchmarks/results
	@set -e; for name in host launch_overhead gemm dtypes epilogues grouped scaled conv; do \
		echo "== $$name"; $(BIN)/python benchmarks/$$name.py; done
	$(BIN)/python benchmarks/report.py

corpus: $(READY)-test $(READY)-corpus ## the corpus with Triton and numba (1.7 GB); its CUDA C++ takes nvcc on the PATH
	$(BIN)/python -m pytest -n auto --maxprocesses 8 --exhaustive tests/corpus

docs: $(READY)-docs ## the documentation as pages in site/: tutorial, how-to pages, reference
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

notebooks: $(READY)-test ## run the notebooks of docs/, and write what their cells show
	$(BIN)/python docs/notebooks.py

clean: ## remove .venv and all caches
	rm -rf $(VENV) .pytest_cache .ruff_cache .mypy_cache .hypothesis site

$(BIN)/python: $(BROKEN)
	@test -n "$(PYTHON)" || { echo "make: Python 3.11 or newer was not found; say make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)

$(READY)-%: pyproject.toml $(BROKEN) | $(BIN)/python
	$(PIP) install --quiet --editable '.[$*]'
	@touch $@
