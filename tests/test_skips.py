"""A skipped test counts as failed where SKIPS=fail says so (tests/conftest.py)."""

import shutil
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

SKIPPING = """
    import pytest

    @pytest.mark.skip(reason="no sshd here")
    def test_marked(): ...

    def test_inside():
        pytest.skip("no root here")

    @pytest.mark.xfail(strict=True)
    def test_expected_to_fail():
        raise ValueError
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    shutil.copy(str(Path(__file__).with_name("conftest.py")), str(pytester.path))
    pytester.makepyfile(test_skipping=SKIPPING, test_module='import pytest\npytest.importorskip("no_such_module")')
    return pytester


def test_with_skips_fail_a_skipped_test_or_module_fails_and_names_its_reason(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKIPS", "fail")
    result = suite.runpytest("--continue-on-collection-errors")
    result.assert_outcomes(failed=1, errors=2, xfailed=1)
    result.stdout.fnmatch_lines(["*expected to run, since SKIPS=fail; found Skipped: no root here"])
    assert result.ret != 0


def test_without_it_a_skipped_test_is_only_reported(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SKIPS", raising=False)
    result = suite.runpytest()
    result.assert_outcomes(skipped=3, xfailed=1)
    assert result.ret == 0
