# docs/development.md describes each target for developers.
VENV ?= .venv
RUNTIME ?=
export VENV RUNTIME

.DEFAULT_GOAL := help
.PHONY: help up test test-fast differential nightly chaos attack check lint docs bench bench-speed bench-docs bench-hosts bench-graphs bench-starts bench-drain bench-export bench-starved bench-recommend bench-scale bench-faults ring lock

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile

up: ## build .venv if it is missing or stale, then train what hosts.yaml says (ARGS= goes to launch)
	@requirements/bootstrap.sh run
	@$(VENV)/bin/launch up hosts.yaml $(ARGS)

# A file is one process's: its tests share hosts and clusters. They are run in six stages: clusters in a test's
# process leave threads, thousands of files open and gigabytes of memory until it ends. Tests wait a third of their
# time, those of the launcher three fifths: as many processes share two cores. The longest files go first
# (tests/support/order.py).
# Bytecode is written whatever the environment says: else each of hundreds of launchers and tasks compiles its modules.
TRAINING = $(addprefix tests/cluster/,model serving training)
PYTEST = env -u PYTHONDONTWRITEBYTECODE $(VENV)/bin/python -m pytest -n 3 --dist loadfile

# Each stage adds to what those before it skipped, so that the last lines tell of all (tests/support/skips.py).
test: export SKIPPED = $(VENV)/skipped
test: ## build .venv with the test extras, then run the whole test suite (ARGS= goes to pytest)
	@requirements/bootstrap.sh test
	@rm -f $(SKIPPED)
ifeq ($(strip $(ARGS)),)
	@$(PYTEST) -n 5 tests/launch tests/support/hosts
	@$(PYTEST) $(TRAINING)
	@$(PYTEST) tests/cluster --ignore=tests/cluster/verify --ignore=tests/cluster/recommend $(addprefix --ignore=,$(TRAINING))
	@$(PYTEST) tests/cluster/verify tests/benchmarks
	@$(PYTEST) tests/cluster/recommend tests/differential
	@$(PYTEST) tests $(addprefix --ignore=tests/,launch support/hosts cluster differential benchmarks)
else
	@$(PYTEST) $(ARGS)
endif

test-fast: ## build .venv with the test extras, then run the tests that start nothing and load no TensorFlow (ARGS=)
	@requirements/bootstrap.sh test
	@$(PYTEST) --fast $(ARGS)

differential: ## train small models beside plain TensorFlow in one process, every pair of ways (ARGS=--docs: all ways, half a day)
	@requirements/bootstrap.sh test
	@$(VENV)/bin/python -m tests.differential $(or $(ARGS),--pairs --docs)
	@$(VENV)/bin/python -m tests.differential.generated --seeds $(or $(SEEDS),500)
	@$(VENV)/bin/python -m tests.differential.constructions --seeds $(or $(SEEDS),1000)

nightly: ## run all that is too long for make test: 20,000 histories, 1,000 constructions, chaos, attack, soak (as root; ARGS="chaos --first 700")
	@requirements/bootstrap.sh test
	@$(VENV)/bin/python -m tests.nightly $(ARGS)

chaos: ## inject random faults into N runs on fake hosts, from SEED on, and list those that went wrong (as root; ARGS=)
	@requirements/bootstrap.sh test
	@$(VENV)/bin/python -m tests.chaos -n $(or $(N),20) $(addprefix --seed ,$(SEED)) $(ARGS)

attack: ## attack a run on fake hosts as another user and as a neighbour, and list what got through (as root; ARGS=)
	@requirements/bootstrap.sh test
	@$(VENV)/bin/python -m tests.attack $(ARGS)

check: lint ## formatter, linter, types, shell scripts, import arrows, words and sentences
	@$(VENV)/bin/python -m pytest -q tests/test_architecture.py tests/test_prose.py

lint: ## what of `make check` is no test, and so no part of `make test`
	@requirements/bootstrap.sh test
	@$(VENV)/bin/ruff format --check
	@$(VENV)/bin/ruff check
	@$(VENV)/bin/mypy
	@$(VENV)/bin/shellcheck requirements/*.sh tests/*.sh .ci/run

docs: ## write the reference and build the documentation into build/site
	@requirements/bootstrap.sh test
	@mkdir -p build && $(VENV)/bin/python -m tests.reference > build/reference.md && mv build/reference.md docs/reference.md
	@$(VENV)/bin/python -m mkdocs build --strict --quiet

bench: ## measure start and end of a run against TensorFlow alone, and steps in a small case (as root)
	@requirements/bootstrap.sh test
	@$(VENV)/bin/python -m tests.benchmarks.startup
	@$(VENV)/bin/python -m tests.benchmarks.speed run

bench-speed: ## measure steps on fake hosts against their bound and TensorFlow's own optimizer (as root; ARGS=)
	@requirements/bootstrap.sh test
	@$(VENV)/bin/python -m tests.benchmarks.speed run $(ARGS)

ring: ## build .venv-ring with Horovod, whose ring bench-speed then compares with
	@requirements/ring.sh

bench-docs: ## write the tables and plots of docs/measurements/speed.md from the results beside them
	@requirements/bootstrap.sh plots
	@$(VENV)/bin/python -m tests.benchmarks.speed docs

bench-hosts: ## measure up and down of 64 fake hosts against Fabric's own group (as root)
	@requirements/bootstrap.sh test
	@$(VENV)/bin/python -m tests.benchmarks.fanout

bench-graphs: ## count the operations of a chief's graph and of a worker's, and measure the time of building
	@requirements/bootstrap.sh test
	@$(VENV)/bin/python -m tests.benchmarks.graphs

bench-starts: ## measure `launch up` to the first step, and each role's memory, beside the textbook's script (as root; ARGS=)
	@requirements/bootstrap.sh test
	@$(VENV)/bin/python -m tests.benchmarks.starts $(ARGS)

bench-drain: ## measure for how long training stands still while ps join a run and leave it (ARGS="--rows 1000000")
	@requirements/bootstrap.sh test
	@$(VENV)/bin/python -m tests.benchmarks.drain $(ARGS)

bench-export: ## measure for how long training stands still while it is exported (ARGS="--rows 1000000")
	@requirements/bootstrap.sh test
	@$(VENV)/bin/python -m tests.benchmarks.exports $(ARGS)

bench-starved: ## start clusters whose hosts have a tenth of a core each, and count the healthy tasks that are accused (as root; ARGS=)
	@requirements/bootstrap.sh test
	@$(VENV)/bin/python -m tests.benchmarks.starved $(ARGS)

bench-recommend: ## measure recommenders of 26 embedding tables beside TensorFlow's own ways to train them (as root; ARGS=)
	@requirements/bootstrap.sh test
	@$(VENV)/bin/python -m tests.benchmarks.recommend run $(ARGS)

bench-scale: ## measure the cost of a hosts file of 10,000 tasks, stage by stage
	@requirements/bootstrap.sh test
	@$(VENV)/bin/python -m tests.benchmarks.scale

bench-faults: ## measure the cost of faults for the lead of a run of 10,000 tasks
	@requirements/bootstrap.sh test
	@$(VENV)/bin/python -m tests.benchmarks.faults

lock: ## resolve requirements/*.in into the lock files
	@requirements/lock.sh
