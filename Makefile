# Every target sets up what it needs: a virtual environment inside the checkout, filled by uv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
VENV2  := .venv-airflow-2
READY  := $(VENV)/.ready
LIVE   := $(VENV)/.ready-live
# Generation of the real server: 2, or 1 for the older one.
SERVER ?= 2
UV     := 0.13.8
# Tests of what Airflow 2 does not have, or does only with a database.
NEED_AIRFLOW_3 := tests/unit/test_imports.py tests/simulator/operators/test_credentials.py tests/waiting/test_notifier.py \
  $(wildcard tests/waiting/test_event*.py tests/running/test_killed_*.py)

.DEFAULT_GOAL := help
.PHONY: help demo test test-airflow-2 test-live conformance bench-imports bench-waiting lint format constraints clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

demo: $(READY) ## run a DAG of the main job against the simulator (or SERVICE_URL, SERVICE_API_KEY)
	$(BIN)/python -m scripts.demo

test: $(READY) ## run all tests but the live ones, with branch coverage
	$(BIN)/python -m pytest -n 2 --dist loadfile --cov --cov-report=term
	$(BIN)/python -m tests.conformance.table --check simulator

test-airflow-2: ## test client, hook, operators and waits on Airflow 2.11, in an environment of their own
	test -x $(VENV2)/bin/python || $(PYTHON) -m venv $(VENV2)
	$(VENV2)/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV)
	$(VENV2)/bin/uv pip install --quiet --python $(VENV2) apache-airflow==2.11.2 --editable '.[simulator]' \
	  pytest pytest-xdist requests-mock hypothesis jsonschema
	$(VENV2)/bin/python -m pytest -q -n 2 --dist loadfile -o addopts= -o filterwarnings= \
	  tests/unit tests/simulator/operators tests/running tests/waiting $(addprefix --ignore ,$(NEED_AIRFLOW_3)) \
	  -k "not reschedule and not a_sensor_stops_nothing and not stops_it_when_killed and not triggerer and not users_kill"

test-live: $(LIVE) ## run the live tests and the conformance suite against a real server (SERVER=1: the older one)
	$(BIN)/python -m pytest tests/live tests/conformance --target $(SERVER) --durations=5
	$(BIN)/python -m tests.conformance.table --check $(SERVER) $(if $(filter 2,$(SERVER)),contract)

conformance: $(READY) ## write docs/conformance.md from the latest test, test-live and test-live SERVER=1
	$(BIN)/python -m tests.conformance.table

bench-imports: $(READY) ## measure what importing operators and sensors costs a DAG file
	$(BIN)/python -m bench.imports

bench-waiting: $(READY) ## measure thousands of waits in one event loop; about 20 minutes
	$(BIN)/python -m bench.waiting

lint: $(READY) ## ruff with the Airflow rules, mypy strict on the package
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY) ## write the code as ruff wants it
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

constraints: $(READY) ## pin the newest versions of all that development needs
	$(BIN)/uv pip compile pyproject.toml --all-extras --group dev --group live --upgrade --python-version 3.11 \
	  --no-emit-index-url --no-header --no-annotate -o constraints.txt

clean: ## remove the environment and all that was made
	rm -rf $(VENV) $(VENV2) .airflow .conformance .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage*

$(READY): pyproject.toml constraints.txt
	@echo "Setting up $(VENV): Airflow and the development tools; a minute or two the first time"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV)
	$(BIN)/uv pip install --quiet --python $(VENV) --constraint constraints.txt --editable '.[simulator]' --group dev
	@touch $@

$(LIVE): $(READY)
	$(BIN)/uv pip install --quiet --python $(VENV) --constraint constraints.txt --group live
	@touch $@
