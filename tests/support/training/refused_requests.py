"""Tests run again in which TensorFlow 2.x refused a request by mistake, which may happen in any step.

A master draws the id of a request in a new thread, from 32 random bits, and a server refuses an id that is among its
last 100,000. So up to one step in 43,000 fails: 8 of 600,000 in a trial. A worker whose step fails joins again, and so
loses nothing. A test that steps by itself has nobody who joins again.
"""

import warnings
from typing import Any, List

import pytest
from _pytest.runner import runtestprotocol

MESSAGE = "The same RunGraph (Worker) request was received twice"  # a tensor may be asked for again after a failure


def run(item: Any, nextitem: Any) -> None:
    """Run a test, and once more if a request of it was refused by mistake; report its last run."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    if _is_refused(reports):
        _say(item)
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _say(item: Any) -> None:
    """Name the test among the warnings, which pytest prints at the end."""
    text = f"ran again, after: {MESSAGE}"
    warning = warnings.WarningMessage(pytest.PytestWarning(text), pytest.PytestWarning, str(item.path), 0)
    recorded = {"warning_message": warning, "when": "runtest", "nodeid": item.nodeid, "location": None}
    item.ihook.pytest_warning_recorded.call_historic(kwargs=recorded)


def _is_refused(reports: List[Any]) -> bool:
    return any(report.failed and MESSAGE in report.longreprtext for report in reports)
