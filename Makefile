# BERTology, live. `make` alone lists the targets.

# The first Python that is new enough; override with: make PYTHON=/path/to/python3 book
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
  "$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$p"; break; }; done)
PORT ?= 8000
# TORCH=cpu installs PyTorch without CUDA: much smaller on Linux. Only the first installation asks.
TORCH ?=
# How many unit tests `make test-random` runs at once.
JOBS ?= 2
RUN = .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help env book test serve notebooks lab assignments grade gettext lint browser-test check benchmarks clean distclean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-18s %s\n", $$1, $$2}'

env:  ## create .venv with the pinned packages (every target does this when needed)
	@if [ -z "$(PYTHON)" ]; then echo "BERTology, live needs Python 3.11 or newer and found none; install it or run: make PYTHON=/path/to/python3 book" >&2; exit 1; fi
	@"$(PYTHON)" tools/setup_env.py $(TORCH)

book: env  ## run every chapter on the model and build the pages
	@$(RUN) -m tools.build_book

test: env  ## run the unit tests
	@$(RUN) -m pytest

.PHONY: test-random coverage
test-random: env  ## run the unit tests shuffled, JOBS=2 at a time (SEED=N repeats an order)
	@$(RUN) -m pip install --quiet --disable-pip-version-check -r requirements-tests.txt
	@$(RUN) -m pytest --random-order $(if $(SEED),--random-order-seed=$(SEED)) --numprocesses=$(JOBS) --dist=loadfile

coverage: env  ## count which lines of bertology_utils the unit tests run, in _build/coverage
	@$(RUN) -m pip install --quiet --disable-pip-version-check -r requirements-tests.txt
	@rm -rf _build/coverage && mkdir -p _build/coverage
	@$(RUN) -m coverage run -m pytest
	@$(RUN) -m coverage combine --quiet
	@$(RUN) -m coverage html --quiet
	@$(RUN) -m coverage report

serve: book  ## build, then serve the book on this machine (PORT=8000)
	@echo "Serving http://127.0.0.1:$(PORT)/ (stop with Ctrl-C)"
	@$(RUN) -m http.server --bind 127.0.0.1 --directory _build/html $(PORT) || [ $$? -eq 130 ]

notebooks: env  ## write every chapter as a runnable .ipynb into notebooks/
	@$(RUN) -m tools.export_notebooks

.PHONY: linkcheck
linkcheck: book  ## ask every other host that the pages link to (needs a connection)
	@$(RUN) -m tools.linkcheck

.PHONY: pdf
pdf: book  ## print the whole book into _build/bertology.pdf (needs chromium on PATH)
	@$(RUN) -m pip install --quiet --disable-pip-version-check -r requirements-browser.txt
	@$(RUN) -m tools.book_pdf

.PHONY: publish-notebooks
publish-notebooks: env  ## commit the notebooks to the branch `notebooks`, for Colab and JupyterHub
	@$(RUN) -m tools.publish_notebooks

lab: notebooks  ## open the notebooks in JupyterLab (installed on first use)
	@$(RUN) -m pip install --quiet --disable-pip-version-check -r requirements-lab.txt
	@$(RUN) -m jupyterlab --notebook-dir=notebooks

assignments: env  ## write the graded notebooks, for students and for the grader, into _build/assignments
	@$(RUN) -m tools.assignments

grade: env  ## grade a folder: make grade SUBMISSIONS=folder ASSIGNMENT=01_architecture [OUT=scores.csv]
	@if [ -z "$(SUBMISSIONS)" ] || [ -z "$(ASSIGNMENT)" ]; then echo "say what to grade: make grade SUBMISSIONS=folder ASSIGNMENT=01_architecture [OUT=scores.csv]" >&2; exit 1; fi
	@$(RUN) -m tools.grading --submissions "$(SUBMISSIONS)" --assignment "$(ASSIGNMENT)" $(if $(OUT),--out "$(OUT)")

gettext: env  ## bring the catalogues for translators (locale/) up to date with the pages
	@$(RUN) -m tools.catalogues

lint: env  ## check style
	@$(RUN) -m ruff check .

.PHONY: audit
audit: env  ## look the pinned packages up among known weaknesses (needs a network)
	@$(RUN) -m venv _build/audit
	@_build/audit/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-audit.txt
	@_build/audit/bin/pip-audit --no-deps --disable-pip -r requirements.txt

check: book  ## check the built book: pages, links, figures, downloads
	@$(RUN) -m pytest -m book tests/test_built_pages.py

browser-test: book  ## open the built book in Chromium (needs chromium on PATH)
	@$(RUN) -m pip install --quiet --disable-pip-version-check -r requirements-browser.txt
	@$(RUN) -m pytest -m browser tests/browser

.PHONY: compatibility
compatibility: env  ## test with the oldest and the newest supported versions (gigabytes, on first use)
	@$(RUN) -m tools.compatibility

.PHONY: mutants
mutants: env  ## change formulas of the numerical core one by one: do the tests notice? (about an hour)
	@$(RUN) -m pip install --quiet --disable-pip-version-check -r requirements-mutants.txt
	@$(RUN) -m tools.mutants

benchmarks: env  ## time the package against other libraries (hours; see benchmarks/README.md)
	@$(RUN) -m benchmarks

clean:  ## remove everything built; the environment stays
	@rm -rf _build notebooks
	@[ ! -d locale ] || find locale -name '.*.new' -exec rm -rf {} +
	@find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +

distclean: clean  ## also remove the environment
	@rm -rf .venv benchmarks/.venv
