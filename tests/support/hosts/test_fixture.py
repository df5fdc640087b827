"""Where this machine cannot have fake hosts, every test that names them is skipped, with what is missing."""

import pytest

from tests.support.hosts import needs

pytest_plugins = ["pytester"]

NAMING = """
    def test_asks_for_hosts(fake_hosts):
        fake_hosts(1)

    def test_only_names_them(fake_hosts):
        raise AssertionError("expected a skip, found a test that runs")
"""


def test_a_test_that_names_fake_hosts_is_skipped_where_there_can_be_none(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(needs, "missing", lambda: ("sshd (apt-get install openssh-server)",))
    pytester.makeconftest('pytest_plugins = ["tests.support.hosts.fixture"]')
    pytester.makepyfile(NAMING)
    result = pytester.runpytest_inprocess("-rs", "-p", "no:cacheprovider")
    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(["*openssh-server*"])
