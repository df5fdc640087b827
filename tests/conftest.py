"""What holds for every test: with ``SKIPS=fail`` in the environment a skipped test has failed.

CI sets it, so that a claim is never taken as shown on a machine that could not show it.
"""

import os
import resource
from typing import Any, Generator

import pytest

# Servers of TensorFlow cannot be stopped: those that tests make in this process keep their files open.
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)

pytest_plugins = ["tests.hosts.fixture"]


def _skips_fail(report: Any) -> None:
    """Turns a skipped report into a failed one that names the reason. Expected failures stay as they are."""
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("SKIPS") == "fail":
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid}: expected to run, since SKIPS=fail; found {reason}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, None]:
    """A test that skipped itself."""
    outcome = yield
    _skips_fail(outcome.get_result())


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report() -> Generator[None, Any, None]:
    """A module that skipped itself while it was imported."""
    outcome = yield
    _skips_fail(outcome.get_result())
