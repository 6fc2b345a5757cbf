# Every target sets up what it needs: a virtual environment inside the checkout, filled by uv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
LIVE   := $(VENV)/.ready-live
MUTATION := $(VENV)/.ready-mutation
STACK  := .venv-stack
SITE   := .site/.ready
RELEASE := $(VENV)/.ready-release
# The real server: 2.41, 2.40, 2.39, 2.30, 2.20 or 1.123; as one process, or in queue mode with PostgreSQL, Redis and a worker.
SERVER ?= 2.41
DEPLOYMENT ?= single
UV     := 0.13.8
# A file's tests share a process, and so do some files (tests/distribution.py); files begin in the order of the folders,
# so that those that need a server follow each other.
PARALLEL := --dist loadfile --no-loadscope-reorder
# What fails is run once more, alone. Arguments after --first are those of the first run only.
TESTS  := -m scripts.retest
# What draws the diagrams of the documentation site.
MERMAID := 12.3.0
# What judges the accessibility of pages.
AXE := 4.14.1
# Versions of Airflow that test-matrix takes: some of these, all by default; or 3.4, a pre-release.
AIRFLOW ?= 2.11 3.0 3.1 3.2 3.3

# The tests start many processes that import Airflow: without its bytecode, each would compile it anew, for seconds.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo acceptance corpus live-server smoke-live smoke-stack test test-slow test-matrix test-live test-chaos test-delays test-mutation test-stack conformance bench bench-imports bench-instances bench-starts bench-transfers bench-waiting bench-sizing bench-triggerer bench-overload bench-pages bench-viewers stack-wheel docs pictures plots site release test-floors lint format constraints clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

demo: $(READY) ## run a DAG of the main job against the simulator (or SERVICE_URL, SERVICE_API_KEY)
	$(BIN)/python -m scripts.demo

# Some tests wait in real time, so two cores are busy only with six processes; more would only import Airflow more often.
test: $(READY) ## run the tests without a real server or deployment, but for the slow ones (COVERAGE=1: with branch coverage and its gate)
	$(BIN)/python $(TESTS) $(if $(COVERAGE),--coverage) --first --slow=without -n 6 $(PARALLEL)
	$(if $(COVERAGE),$(BIN)/slipcover --merge .coverage.json --out .coverage.json --fail-under 95)
	$(BIN)/python -m tests.conformance.table --check simulator

test-slow: $(READY) ## run the slow tests, which make test leaves out (tests/slow.py); about as long as make test
	$(BIN)/python $(TESTS) --first --slow=only -n 4 $(PARALLEL)

test-matrix: $(READY) ## take the first steps on each Airflow and Python (scripts/first_steps.py), then test all but the simulator on each Airflow (AIRFLOW="2.11 3.3": on some)
	rm -f .nox/first-steps.md
	$(BIN)/nox --tags $(AIRFLOW); status=$$?; cat .nox/first-steps.md; exit $$status

test-live: $(LIVE) ## live tests and conformance on a real server (SERVER=2.20: an older one; DEPLOYMENT=queue: live tests only)
ifeq ($(DEPLOYMENT),single)
	$(BIN)/python $(TESTS) tests/live tests/conformance --target $(SERVER) --first -n 3 $(PARALLEL) --durations=5
	$(BIN)/python -m tests.conformance.table --check $(SERVER) $(if $(filter 2.41,$(SERVER)),contract)
	$(BIN)/python -m tests.conformance.features.table --check $(SERVER)
else
	$(BIN)/python $(TESTS) tests/live --target $(SERVER) --deployment $(DEPLOYMENT) --first --durations=5
endif

test-chaos: $(READY) ## tasks between a bad network, workers that die and wrong clocks (SHORT=1: in minutes; CHAOS_SEED=...)
	SHORT=$(SHORT) $(BIN)/python $(TESTS) tests/chaos

test-delays: $(READY) ## the tests of test and test-slow, with answers delayed at random (SEED=3: as in that run; ONLY=tests/events: some)
	$(BIN)/python -m pytest -p tests.delays -n 8 $(PARALLEL) $(if $(SEED),--delays-seed $(SEED)) $(ONLY)

test-mutation: $(MUTATION) ## mutate runs, waits, rows and more and show what no test notices (MODULE=rows/upsert_plan.py; FUNCTION=plan_upsert; SAMPLE=50: mutants of each); hours
	$(BIN)/python -m scripts.mutation $(MODULE) $(if $(FUNCTION),--function $(FUNCTION)) $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED))

test-stack: stack-wheel ## run a real deployment of Airflow with the wheel, kill it, click it (SHORT=1: in minutes)
	SHORT=$(SHORT) $(STACK)/bin/python $(TESTS) tests/databases tests/stack --first --durations=10

live-server: $(LIVE) ## install the real server, which test-live and smoke-live do if it is missing (SERVER=2.20: an older one)
	$(BIN)/python -m tests.live.servers $(SERVER)

smoke-live: $(LIVE) ## run the main jobs on a real server; two minutes once it is installed
	$(BIN)/python $(TESTS) tests/live -m smoke --target $(SERVER)

smoke-stack: stack-wheel ## run the main jobs in a real deployment of Airflow with the wheel; three minutes
	SHORT=1 $(STACK)/bin/python $(TESTS) tests/stack -m smoke

acceptance: $(READY) ## run all suites, the long ones too, and write .acceptance/table.md; hours, and can be continued
	$(BIN)/python -m scripts.acceptance

corpus: $(READY) ## take 300 workflows as people have them through plan, deployment, export, backup, restore and drawing, on the simulator (SEED=1: others; FILES=folder: those of a folder)
	$(BIN)/python -m tests.corpus $(if $(SEED),--seed $(SEED)) $(if $(FILES),--files "$(FILES)")

conformance: $(READY) ## renew docs/conformance.md and docs/versions.md from the latest test and test-live
	$(BIN)/python -m tests.conformance.table
	$(BIN)/python -m tests.conformance.features.table

bench: $(READY) ## measure reads, inserts and upserts of rows beside what users do today (SERVICE_URL, SERVICE_API_KEY: of a real server)
	$(BIN)/python -m bench.rows

bench-imports: $(READY) ## measure what importing operators and sensors costs a DAG file
	$(BIN)/python -m bench.imports

bench-starts: $(READY) ## measure how long starting a workflow takes, by way (SERVICE_URL, SERVICE_API_KEY, SERVICE_MCP_API_KEY: of a real server)
	$(BIN)/python -m bench.starts

bench-instances: $(READY) ## measure plans and deployments of 100 to 2,000 workflows beside a plain loop (SERVICE_URL, SERVICE_API_KEY: 300 on a real server)
	$(BIN)/python -m bench.instances

bench-transfers: $(STACK)/.ready ## measure time and memory of transfers of 1,000,000 rows with PostgreSQL and Parquet
	AIRFLOW__LOGGING__LOGGING_LEVEL=WARNING $(STACK)/bin/python -m bench.transfers

bench-waiting: $(READY) ## measure thousands of waits in one event loop; about 20 minutes
	$(BIN)/python -m bench.waiting

bench-sizing: $(READY) ## simulate one to ten triggerers with 5,000 to 50,000 waits
	$(BIN)/python -m bench.sizing

bench-triggerer: stack-wheel ## measure a real triggerer with SENSORS=1000 deferred sensors for MINUTES=10; about an hour
	$(STACK)/bin/python -m bench.triggerer --sensors $(or $(SENSORS),1000) --minutes $(or $(MINUTES),10)

bench-overload: stack-wheel ## let two real triggerers wait with SENSORS=2000 deferred sensors for MINUTES=10 while 30 % of the requests are refused
	$(STACK)/bin/python -m bench.overload --sensors $(or $(SENSORS),2000) --minutes $(or $(MINUTES),10)

bench-pages: stack-wheel ## measure what the pages in Airflow weigh, how soon they are seen, and what they cost; about 20 minutes
	$(STACK)/bin/python -m bench.pages
	$(MAKE) bench-viewers

bench-viewers: $(READY) ## measure what 50 viewers of the largest execution and of the longest list cost Airflow's own requests; about 12 minutes
	$(BIN)/python -m bench.viewers

docs: site ## build the documentation site into .site/html; warnings, dead links, wrong searches and code that no test runs are errors
	$(BIN)/python -m pytest tests/docs

pictures: $(STACK)/.ready ## make the screenshots in docs/images again, and those with which test-stack compares, of the pages as they are now
	$(STACK)/bin/python -m scripts.pictures
	STORE_PICTURES=1 $(STACK)/bin/python -m pytest tests/stack/test_drawing.py -k "it_is_read or it_is_accessible"

plots: $(SITE) ## plot the tables of docs/benchmarks.md and docs/sizing.md again
	$(BIN)/python -m scripts.plots

site: $(SITE) ## build the site as make docs does, without the tests of its code, which make test and test-slow run, too
	$(BIN)/python -m scripts.site

test-floors: $(READY) ## test the client with the lowest versions of all dependencies
	$(BIN)/nox --sessions floors

release: $(RELEASE) ## build wheel, sdist and bill of materials into dist and check them (DOCUMENTATION_URL, REPOSITORY_URL; AIRFLOW="2.11 3.3": on some)
	$(BIN)/python -m scripts.release $(AIRFLOW)

lint: $(READY) ## ruff with the Airflow rules, mypy strict on the package, the layers of its imports, the budgets of its rooms
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m scripts.budgets

format: $(READY) ## write the code as ruff wants it
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

constraints: $(READY) ## pin the newest versions of all that development and the older versions of Airflow need
	$(BIN)/uv pip compile pyproject.toml --all-extras --group dev --group docs --group live --group mutation --group release --group stack --upgrade --python-version 3.11 \
	  --no-emit-index-url --no-header --no-annotate -o constraints.txt
	$(BIN)/nox --sessions pins

clean: ## remove the environment and all that was made
	rm -rf $(VENV) $(STACK) .stack .nox .airflow .conformance .mutation .site .mypy_cache .pytest_cache .ruff_cache .hypothesis .acceptance .unstable-tests .coverage*

$(READY): pyproject.toml constraints.txt
	@echo "Setting up $(VENV): Airflow and the development tools; a minute or two the first time"
	test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV)
	$(BIN)/uv pip install --quiet --python $(VENV) --constraint constraints.txt --editable '.[parquet,simulator]' --group dev
	@touch $@

$(LIVE): $(READY)
	$(BIN)/uv pip install --quiet --python $(VENV) --constraint constraints.txt --group live
	@touch $@

$(RELEASE): $(READY)
	$(BIN)/uv pip install --quiet --python $(VENV) --constraint constraints.txt --group release
	@touch $@

$(MUTATION): $(READY)
	$(BIN)/uv pip install --quiet --python $(VENV) --constraint constraints.txt --group mutation
	@touch $@

$(SITE): $(READY)
	$(BIN)/uv pip install --quiet --python $(VENV) --constraint constraints.txt --group docs
	mkdir -p .site/static
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/npm pack --silent --pack-destination .site mermaid@$(MERMAID)
	tar -xzf .site/mermaid-$(MERMAID).tgz -C .site/static --strip-components=2 package/dist/mermaid.min.js
	@touch $@

stack-wheel: $(STACK)/.ready $(STACK)/axe.min.js
	rm -rf .stack/wheel
	$(STACK)/bin/uv build --quiet --wheel --out-dir .stack/wheel
	$(STACK)/bin/uv pip install --quiet --python $(STACK) --no-deps --reinstall-package airflow-provider-service .stack/wheel/*.whl

$(STACK)/.ready: pyproject.toml constraints.txt
	@echo "Setting up $(STACK): Airflow with Celery, PostgreSQL and Redis, and a driver of the browser"
	test -x $(STACK)/bin/pip || $(PYTHON) -m venv $(STACK)
	$(STACK)/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV)
	$(STACK)/bin/uv pip install --quiet --python $(STACK) --constraint constraints.txt '.[parquet,simulator]' --group stack
	@touch $@

$(STACK)/axe.min.js: $(STACK)/.ready
	PATH="$(CURDIR)/$(STACK)/bin:$$PATH" $(STACK)/bin/npm pack --silent --pack-destination $(STACK) axe-core@$(AXE)
	tar -xzmf $(STACK)/axe-core-$(AXE).tgz -C $(STACK) --strip-components=1 package/axe.min.js
