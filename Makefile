# make run: the default study.  make test: checks and tests.  make studies: small published studies.  All set up what they need, once.
# python3 if it is one of these versions, else the newest of them that is found.
VERSIONS := 3.14 3.13 3.12 3.11
FITS   := -c 'import sys; sys.exit("%d.%d" % sys.version_info[:2] not in "$(VERSIONS)".split())' 2> /dev/null
PYTHON ?= $(shell for name in python3 $(VERSIONS:%=python%); do if $$name $(FITS); then echo $$name; break; fi; done)
VENV   ?= .venv
CORES  ?= all
BIN    := $(abspath $(VENV))/bin
READY  := $(VENV)/.ready
LOCK   := envs/requirements.lock
PIP    := $(BIN)/python -m pip --quiet --disable-pip-version-check
# Tests run in as many processes as there are cores. Workers share the studies of pipeline tests and take one test at a
# time; those of `studies` take a file at a time, as its tests share a study.
WORKERS  ?= auto
PYTEST   := PATH="$(BIN):$$PATH" OMP_NUM_THREADS=1 python -m pytest
PIPELINE := $(PYTEST) -n $(WORKERS) --dist load --maxschedchunk 1 tests/pipeline
STUDIES  := $(PYTEST) -n $(WORKERS) --dist loadfile --no-loadscope-reorder tests/pipeline
# Hundreds of short processes would compile the library again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: ready run test unit pipeline studies realdata browser gpu test-slurm lint check-types check-rules check-style bench generate docs record release-check notebooks graph clean help

ready: $(READY)

run: $(READY)
	PATH="$(BIN):$$PATH" snakemake --cores $(CORES) all

test: lint unit pipeline

unit: $(READY)
	$(PYTEST) -n $(WORKERS) -m "not pipeline and not studies and not realdata and not gpu and not slurm and not browser"

pipeline: $(READY)
	$(PIPELINE) -m pipeline

studies: $(READY)
	$(STUDIES) -m studies

realdata: $(READY)
	$(PYTEST) -m realdata

browser: $(READY)
	command -v chromium chromium-browser google-chrome > /dev/null || (apt-get update && apt-get install --yes --option DPkg::Lock::Timeout=300 chromium)
	$(PIP) install --requirement envs/browser.txt
	$(PYTEST) -n $(WORKERS) -m browser tests/browser

gpu: $(READY)
	$(PYTEST) -m gpu

test-slurm: $(READY)
	$(PYTEST) -m slurm tests/slurm

# The three checks side by side, each with its output in one block.
lint: $(READY)
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target check-types check-rules check-style

check-types:
	$(BIN)/mypy

check-rules:
	$(BIN)/snakefmt --check Snakefile workflow/Snakefile rules
	PATH="$(BIN):$$PATH" snakemake --lint
	$(BIN)/plumbline generate --check

check-style:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

bench: $(READY)
	$(BIN)/python bench/run.py

generate: $(READY)
	$(BIN)/plumbline generate

# The documentation site, in build/docs; a dead link or a page without a place fails.
docs: $(READY)
	$(PIP) install --requirement envs/docs.txt
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --fresh-env docs build/docs
	@echo "build/docs/index.html"

# The pages of recorded runs, and the README.
record: $(READY)
	for page in reproductions/*/page.md; do study=$$(basename $$(dirname $$page)); \
	    $(BIN)/python -m plumbline.cli fill $$page --into docs/studies/$$study.md || exit 1; done
	for page in quirks results trust; do \
	    $(BIN)/python -m plumbline.cli fill reproductions/$$page.md --into docs/studies/$$page.md || exit 1; done
	$(BIN)/python -m plumbline.cli fill reproductions/findings.md --into docs/findings.md
	$(BIN)/python -m plumbline.cli fill reproductions/front-page.md --into README.md

# What a release needs: checks, the site, one version everywhere, a wheel that runs alone, the workflow catalogue's files.
release-check: lint docs
	$(PYTEST) tests/unit/test_release.py
	$(PIPELINE)/test_wheel.py tests/pipeline/test_module.py

notebooks: $(READY)
	PYTHONPATH=workflow PATH="$(BIN):$$PATH" python -m tests.notebooks

# Drawings of the architecture page; that of the rules needs graphviz.
graph: $(READY)
	$(BIN)/plumbline graph --packages docs/images/packages.svg
	$(BIN)/plumbline graph docs/images/rule-graph.svg

# torch with what its build for this machine needs, which no lock can know; the rest is all in the lock, so that pip need
# not work it out.
$(READY): $(LOCK) pyproject.toml
	@$(PYTHON) $(FITS) || { echo "plumbline needs Python 3.11 to 3.14: install one, or name it with PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --constraint $(LOCK) torch
	$(PIP) install --no-deps --requirement $(LOCK)
	$(PIP) install --no-deps --no-build-isolation --editable .
	$(PIP) check
	@touch $@

clean:
	rm -rf results .snakemake

help:
	@sed -n 's/^# //p' Makefile | head -1
