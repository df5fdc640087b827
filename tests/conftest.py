"""What holds for every test: skipped tests are told at the end, and with ``SKIPS`` in the environment they have failed.

CI sets it, so that a claim is never taken as shown on a machine that could not show it.
"""

import os
import resource
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Generator, Iterator, List, Optional

import pytest

from tests.support import fast, few_values, rewriting, skips

# Servers of TensorFlow cannot be stopped: those that tests make in this process keep their files open.
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)

pytest_plugins = ["tests.support.hosts.fixture"]


def pytest_addoption(parser: Any) -> None:
    """``--fast``, which ``make test-fast`` sets, ``--slow`` for the others, ``--nightly``, ``--one-value`` of CI."""
    parser.addoption("--fast", action="store_true", help="only tests that start nothing and load no TensorFlow")
    parser.addoption("--slow", action="store_true", help="only tests that start something or load TensorFlow")
    parser.addoption("--nightly", action="store_true", help="only tests that are too long for make test")
    parser.addoption("--one-value", action="store_true", help="only the first value of each test that has several")


def pytest_configure(config: Any) -> None:
    """Share the rewriting of asserts between the processes of xdist."""
    worker = getattr(config, "workerinput", None)
    if worker and not sys.dont_write_bytecode:
        rewriting.rewrite_share(config, int(worker["workerid"][len("gw") :]), worker["workercount"])


def pytest_ignore_collect(collection_path: Path, config: Any) -> Optional[bool]:
    """Leave a file unread that is not asked for: the imports of a slow one alone may take seconds."""
    if not (collection_path.name.startswith("test_") and collection_path.suffix == ".py"):
        return None
    is_left_out = config.getoption("fast") and not fast.is_fast(collection_path)
    is_left_out = is_left_out or (config.getoption("slow") and fast.is_fast(collection_path))
    return True if is_left_out else None


def pytest_collection_modifyitems(config: Any, items: List[Any]) -> None:
    """Leave out tests of ``make nightly``, and what is slow by its mark or in a file that the command line names."""
    is_nightly = config.getoption("nightly")
    out = {item for item in items if bool(item.get_closest_marker("nightly")) != is_nightly}
    if config.getoption("fast"):
        unread = {path for path in {item.path for item in items} if not fast.is_fast(path)}
        out |= {item for item in items if item.path in unread or item.get_closest_marker("not_fast")}
    if config.getoption("one_value"):
        out |= few_values.others([item for item in items if item not in out])
    config.hook.pytest_deselected(items=[item for item in items if item in out])
    items[:] = [item for item in items if item not in out]


@pytest.fixture(autouse=True, scope="session")
def fast_tests_are_fast(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a fast test that starts a process or loads TensorFlow all the same."""
    with ExitStack() as stack:
        if request.config.getoption("fast"):
            stack.enter_context(fast.guarded())
        yield


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: Any, log: Any) -> Any:
    """With ``--dist loadfile``: the files that take longest first."""
    if config.getvalue("dist") != "loadfile":
        return None
    from tests.support.order import LongestFirst  # here: xdist is not loaded where it is switched off

    return LongestFirst(config, log)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, None]:
    """A test that skipped itself."""
    outcome = yield
    skips.fail_unwanted(outcome.get_result())


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report() -> Generator[None, Any, None]:
    """A module that skipped itself while it was imported."""
    outcome = yield
    skips.fail_unwanted(outcome.get_result())


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What was skipped, in this stage of ``make test`` and in those before it."""
    if hasattr(terminalreporter.config, "workerinput"):  # one of several processes: the first counts for all
        return
    total = skips.add_up(terminalreporter.stats.get("skipped", []), os.environ.get("SKIPPED"))
    lines = skips.summary(total)
    if lines:
        terminalreporter.section(f"{sum(total.values())} tests were skipped")
        terminalreporter.write_line("\n".join(lines))
