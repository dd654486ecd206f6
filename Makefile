# make run: the default study.  make test: checks and tests.  make studies: small published studies.  All set up what they need, once.
PYTHON ?= python3
VENV   ?= .venv
CORES  ?= all
BIN    := $(abspath $(VENV))/bin
READY  := $(VENV)/.ready
LOCK   := envs/requirements.lock

.PHONY: run test unit pipeline studies realdata browser gpu test-slurm lint bench generate clean help

run: $(READY)
	PATH="$(BIN):$$PATH" snakemake --cores $(CORES) all

test: lint unit pipeline

unit: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto -m "not pipeline and not studies and not realdata and not gpu and not slurm and not browser"

pipeline: $(READY)
	PATH="$(BIN):$$PATH" python -m pytest -m pipeline

studies: $(READY)
	PATH="$(BIN):$$PATH" python -m pytest -m studies

realdata: $(READY)
	PATH="$(BIN):$$PATH" python -m pytest -m realdata

browser: $(READY)
	command -v chromium chromium-browser google-chrome > /dev/null || (apt-get update && apt-get install --yes chromium)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement envs/browser.txt
	PATH="$(BIN):$$PATH" python -m pytest -m browser

gpu: $(READY)
	PATH="$(BIN):$$PATH" python -m pytest -m gpu

test-slurm: $(READY)
	PATH="$(BIN):$$PATH" OMP_NUM_THREADS=1 python -m pytest -m slurm tests/slurm

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/snakefmt --check Snakefile rules
	PATH="$(BIN):$$PATH" snakemake --lint
	$(BIN)/plumbline generate --check

bench: $(READY)
	$(BIN)/python bench/run.py

generate: $(READY)
	$(BIN)/plumbline generate

$(READY): $(LOCK) pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)) and "plumbline needs Python 3.11 or 3.12; set PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement $(LOCK)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

clean:
	rm -rf results .snakemake

help:
	@sed -n 's/^# //p' Makefile | head -1
