# `make demo` and `make test` are all a newcomer needs; each sets up .venv by itself.
PYTHON ?= python3
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: help setup demo serve test check docs paper bench evidence mutants format clean

help:
	@echo "make demo      set up, then ask a million-row table a few dozen questions"
	@echo "make serve     set up, then start a gateway with a synthetic table to play with"
	@echo "make test      set up, then run every test"
	@echo "make check     formatting, lint, types, import contract"
	@echo "make docs      build the book into build/site; make paper prints the leave-out theorem as a PDF"
	@echo "make bench     measure against others, side by side; writes docs/benchmarks.md"
	@echo "make evidence  attack naive answers and ours, thousands of times; writes docs/evidence.md"
	@echo "make mutants   plant small faults in the arithmetic of the promises; writes evidence/mutants.md"
	@echo "make setup     only install into .venv"

setup: .venv/.ready
demo: .venv/.ready
	@$(BIN)/holdfast demo
serve: .venv/.ready-to-serve
	@$(BIN)/holdfast serve --demo
test: .venv/.ready-to-develop
	$(BIN)/pytest -n 2 --dist loadfile
check: .venv/.ready-to-develop
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
docs: .venv/.ready-to-develop
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "build/site/index.html (search needs a server: python3 -m http.server --bind 127.0.0.1 -d build/site)"
paper: docs
	$(BIN)/python tools/print_pdf.py build/site/leave-out.html build/leave-out.pdf
bench: .venv/.ready-to-develop
	$(BIN)/python -m benchmarks
evidence: .venv/.ready-to-develop
	$(BIN)/python evidence/run.py
mutants: .venv/.ready-to-develop
	$(BIN)/python -m mutants
format: .venv/.ready-to-develop
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
clean:
	rm -rf .venv build *.egg-info src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/.ready: pyproject.toml constraints.txt tools/setup.sh
	@PYTHON=$(PYTHON) sh tools/setup.sh "."
	@touch $@
.venv/.ready-to-serve: pyproject.toml constraints.txt tools/setup.sh
	@PYTHON=$(PYTHON) sh tools/setup.sh ".[server]"
	@touch $@ .venv/.ready
.venv/.ready-to-develop: pyproject.toml constraints.txt tools/setup.sh
	@PYTHON=$(PYTHON) sh tools/setup.sh ".[dev]"
	@touch $@ .venv/.ready .venv/.ready-to-serve
