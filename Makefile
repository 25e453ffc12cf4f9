# Two commands: `make study` runs the main job, `make test` the whole suite. Both set up .venv first if needed.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python

MINUTES ?= 60
TESTS ?= tests
SLOW ?= slow

.PHONY: study test slow machines matrix rehearse explore lint smoke bench docs clean
.DELETE_ON_ERROR:

study: $(VENV)/ready
	$(RUN) -m studies.cifar_tns --fallback digits

# Any other study by its name: make study-stiff_euler, make study-theorem2, ...
study-%: $(VENV)/ready
	$(RUN) -m studies.$*

test: $(VENV)/ready
	$(RUN) -m pytest -n 2 --dist worksteal -m "not slow"

slow: $(VENV)/ready
	$(RUN) -m pytest -n 2 --dist worksteal -m "$(SLOW)"

# The commands for the papers' scale, at full depth, on made-up data: at most fifteen minutes on two cores.
rehearse: $(VENV)/ready
	$(RUN) -m tests.rehearse

# Search for counter-examples with fresh random examples: make explore MINUTES=60 TESTS=tests/odelab/engines
explore: $(VENV)/ready
	$(RUN) -m tests.explore --minutes $(MINUTES) $(TESTS)

# odelab alone with the oldest packages it allows and under other Pythons, as far as they are here, in build/matrix.
matrix: $(VENV)/ready
	$(RUN) -m tests.matrix

# The tests that depend on the processor, on emulated ones.
machines: $(VENV)/ready
	$(RUN) -m tests.machines

lint: $(VENV)/ready
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

smoke: $(VENV)/ready
	$(RUN) -m studies --smoke

bench: $(VENV)/bench
	$(RUN) -m benchmarks

# The documentation site, offline, in build/docs/site; a warning is an error.
docs: $(VENV)/docs
	$(RUN) -m docs.site

# torch first and alone: its pin keeps every other package from choosing a build of its own.
$(VENV)/ready: pyproject.toml constraints.txt
	test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[net,studies,dev]'
	touch $@

$(VENV)/bench: $(VENV)/ready
	$(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	$(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps torchode torchtyping
	-$(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt numbalsoda  # needs gfortran and cmake
	touch $@

$(VENV)/docs: $(VENV)/ready
	$(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
