# Short targets; the work is in Python. `make` alone lists them.
PYTHON ?= python3
BOOK = .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help setup book serve test engines labs prove drift fidelity stamp result bench clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: # the book's own environment, in .venv; instant when nothing has changed
	@command -v $(PYTHON) >/dev/null || { echo "This needs Python 3.11 or newer, and found no '$(PYTHON)': install it, or name it with PYTHON=…"; exit 1; }
	@PYTHONPATH=lib $(PYTHON) -m enginelab.environments requirements.txt --into .venv --with-deps

book: setup ## build the site, with the book as an EPUB in it, and say which file to open
	@$(BOOK) site/build.py && $(BOOK) site/ebook.py

serve: book ## build the site and serve it on this machine
	@$(BOOK) -m http.server --bind 127.0.0.1 --directory _build/html 8000

test: setup ## run every test that needs no engine
	@$(BOOK) -m ruff check . && $(BOOK) -m ruff format --check .
	@$(BOOK) -m pytest --numprocesses=auto --maxprocesses=4 --dist=loadfile

engines: setup ## make the engines' environments, in the cache folder
	@for lock in labs/envs/*.txt; do PYTHONPATH=lib $(BOOK) -m enginelab.environments $$lock || exit 1; done

labs: setup ## run the labs from top to bottom
	@# One at a time, for they measure. TensorRT-LLM's is rehearsed by a test of `prove`, which reads its outputs too.
	@$(BOOK) -m pytest --nbmake --nbmake-timeout=900 labs --ignore=labs/03_tensorrt_llm.ipynb

prove: book ## test the course against the real engines: parsers, schedulers, printed commands, faults
	@$(BOOK) -m pytest --numprocesses=2 --dist=loadfile tests/engines

drift: book ## ask the newest releases of the engines about the course's commands, and report what changed
	@$(BOOK) tests/engines/drift.py

fidelity: setup ## compare the engine model with the real schedulers, in full
	@$(BOOK) tests/engines/vllm_fidelity.py && $(BOOK) tests/engines/dynamo_fidelity.py

stamp: setup ## run the labs and keep their outputs, stamped, for the book
	@$(BOOK) labs/execute.py labs/*.ipynb

result: setup ## run one lab, LAB=labs/01_vllm.ipynb, and add what it measured here to labs/results
	@$(BOOK) labs/execute.py --result-only $(LAB)

bench: setup ## measure the library's speed, as ratios in one run
	@for program in bench/*.py; do $(BOOK) $$program || exit 1; done

clean: ## remove what was built here; the cache folder stays
	@rm -rf _build .venv lib/enginelab.egg-info .pytest_cache .ruff_cache .hypothesis
