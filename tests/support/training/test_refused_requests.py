"""A test in which TensorFlow 2.x refused a request by mistake runs again, once; any other runs once."""

import pytest

pytest_plugins = ["pytester"]

FAILING = """
    import pytest

    REFUSED = "The same RunGraph (Worker) request was received twice."
    runs = []

    @pytest.fixture
    def steps():
        return []

    def fail(steps, *messages):
        steps.append(1)
        assert steps == [1]  # the second run has fixtures of its own
        runs.append(1)
        message = messages[len(runs) - 1]
        if message:
            raise RuntimeError(message)

    def test_once(steps):
        fail(steps, REFUSED, None)

    def test_twice(steps):
        runs.clear()
        fail(steps, REFUSED, REFUSED, None)

    def test_otherwise(steps):
        runs.clear()
        fail(steps, "Socket closed", None)
"""

CONFTEST = """
    from tests.support.training import refused_requests

    def pytest_runtest_protocol(item, nextitem):
        refused_requests.run(item, nextitem)
        return True
"""


def test_a_test_runs_once_more_after_a_refused_request(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_failing=FAILING)
    result = pytester.runpytest_subprocess()  # in one that has loaded TensorFlow, contrib adds a warning
    result.assert_outcomes(passed=1, failed=2, warnings=2)
    result.stdout.fnmatch_lines(["*test_failing.py::test_once", "*test_failing.py::test_twice", "*ran again, after: *"])
    result.stdout.fnmatch_lines(["FAILED *::test_*e - RuntimeError: *"] * 2)
