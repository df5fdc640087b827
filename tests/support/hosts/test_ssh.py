"""Fake hosts answer to a real OpenSSH client with the generated configuration."""

import subprocess
from typing import Callable, List

import pytest

from tests.support.hosts import FakeHosts
from tests.support.waiting import PATIENCE_S


@pytest.fixture
def host_pair(fake_hosts: Callable[..., FakeHosts]) -> FakeHosts:
    return fake_hosts(2)


def _run(argv: List[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


def test_ssh_reaches_a_host_by_name_with_strict_host_keys(host_pair: FakeHosts) -> None:
    assert "StrictHostKeyChecking yes" in host_pair.ssh_config.read_text()
    done = _run(host_pair.ssh(host_pair[1], "hostname", "&&", "id", "-un"))
    assert (done.stdout, done.stderr, done.returncode) == ("h2\nroot\n", "", 0)


def test_ssh_reaches_a_host_by_address(host_pair: FakeHosts) -> None:
    done = _run(["ssh", "-F", str(host_pair.ssh_config), host_pair[0].address, "hostname"])
    assert (done.stdout, done.returncode) == ("h1\n", 0)


def test_a_changed_host_key_is_refused_and_only_that_hosts(host_pair: FakeHosts) -> None:
    host_pair.change_host_key(0)
    refused = _run(host_pair.ssh(host_pair[0], "hostname"))
    assert refused.returncode == 255
    assert "Host key verification failed" in refused.stderr
    assert _run(host_pair.ssh(host_pair[1], "hostname")).stdout == "h2\n"


def test_a_changed_host_key_stays_over_a_power_cut(host_pair: FakeHosts) -> None:
    host_pair.change_host_key(0)
    host_pair[0].power_cut()
    host_pair[0].power_on()
    assert _run(host_pair.ssh(host_pair[0], "hostname")).returncode == 255


def test_a_key_of_someone_else_opens_nothing(host_pair: FakeHosts) -> None:
    host_pair[0].write("~/.ssh/authorized_keys", "")
    refused = _run(host_pair.ssh(host_pair[0], "hostname"))
    assert refused.returncode == 255
    assert "Permission denied (publickey)" in refused.stderr


def test_sshd_tells_its_log_on_the_host_what_happened(host_pair: FakeHosts) -> None:
    _run(host_pair.ssh(host_pair[0], "true"))
    assert "Accepted publickey for root" in host_pair[0].read("/var/log/sshd.log")
