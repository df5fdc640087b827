"""Skipped tests are told with the command that adds them, and count as failed where SKIPS says so."""

import shutil
from typing import List

import pytest

from tests.support import ROOT, skips
from tests.support.hosts import needs

pytest_plugins = ["pytester"]

SKIPPING = """
    import pytest

    @pytest.mark.skip(reason="needs fake hosts: this machine lacks sshd")
    def test_marked(): ...

    def test_inside():
        pytest.skip("needs root: it mounts a disk")

    @pytest.mark.xfail(strict=True)
    def test_expected_to_fail():
        raise ValueError
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.delenv("SKIPPED", raising=False)
    shutil.copy(str(ROOT / "tests" / "conftest.py"), str(pytester.path))
    pytester.makepyfile(test_skipping=SKIPPING, test_module='import pytest\npytest.importorskip("no_such_module")')
    return pytester


def test_with_skips_fail_a_skipped_test_or_module_fails_and_names_its_reason(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKIPS", "fail")
    result = suite.runpytest("--continue-on-collection-errors")
    result.assert_outcomes(failed=1, errors=2, xfailed=1)
    result.stdout.fnmatch_lines(["*expected to run, since SKIPS=fail; found Skipped: needs root: it mounts a disk"])
    assert result.ret != 0


def test_without_it_a_skipped_test_is_only_reported(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SKIPS", raising=False)
    result = suite.runpytest()
    result.assert_outcomes(skipped=3, xfailed=1)
    assert result.ret == 0


def test_on_a_fresh_machine_other_skips_than_its_own_fail(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKIPS", "fresh")
    result = suite.runpytest("--continue-on-collection-errors")
    result.assert_outcomes(skipped=2, errors=1, xfailed=1)
    assert result.ret != 0


def test_the_last_lines_count_what_was_skipped_in_all_stages_and_name_the_one_command(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SKIPS", raising=False)
    monkeypatch.setenv("SKIPPED", str(suite.path / "skipped"))
    monkeypatch.setattr(needs, "command", lambda: "sudo make test")
    suite.runpytest("test_skipping.py").stdout.fnmatch_lines(["*2 tests were skipped*"])
    suite.runpytest("test_skipping.py").stdout.fnmatch_lines(
        ["*4 tests were skipped*", "   2 need fake hosts", "   2 need root", "This command*: sudo make test"]
    )


def test_each_skip_is_counted_once_however_many_processes_share_the_tests(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SKIPS", raising=False)
    monkeypatch.setenv("SKIPPED", str(suite.path / "skipped"))
    suite.runpytest_subprocess("-n", "2", "test_skipping.py").stdout.fnmatch_lines(["*2 tests were skipped*"])


def test_where_nothing_is_skipped_nothing_is_told() -> None:
    assert skips.summary({}) == []


@pytest.mark.parametrize(
    ("user", "lacks", "command"),
    [
        (1000, ["sshd", "nft", "ip", "tc"],
         "sudo apt-get install --yes iproute2 nftables openssh-server && sudo make test"),
        (0, ["sshd"], "apt-get install --yes openssh-server && make test"),
        (1000, [], "sudo make test"),
        (0, [], ""),
    ],
)  # fmt: skip
def test_the_command_installs_what_is_missing_and_becomes_root_where_we_are_not(
    monkeypatch: pytest.MonkeyPatch, user: int, lacks: List[str], command: str
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: user)
    monkeypatch.setattr(needs, "_found", lambda tool: tool not in lacks)
    assert needs.command() == command
