"""A fake host is a machine of its own: name, files, processes, address, power and cable."""

import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable, Iterator

import pytest

from tests.support.hosts import FakeHosts, Host, HostError, Process
from tests.support.hosts.boot import wait
from tests.support.nightly import few
from tests.support.waiting import PATIENCE_S

_PORT = 5001
_SILENCE_S = 0.5

_RECEIVE = f"""
import socket
server = socket.socket()
server.bind(("", {_PORT}))
server.listen(9)
while True:
    peer, _ = server.accept()
    while peer.recv(1 << 20):
        pass
    peer.send(b"!")
    peer.close()
"""
_SEND = """
import socket, sys, time
peer = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=30)
began = time.monotonic()
peer.sendall(bytes(int(sys.argv[3])))
peer.shutdown(socket.SHUT_WR)
assert peer.recv(1) == b"!"
print(time.monotonic() - began)
"""


@pytest.fixture
def two(fake_hosts: Callable[..., FakeHosts]) -> FakeHosts:
    return fake_hosts(2)


@pytest.fixture
def receiver(two: FakeHosts) -> Iterator[Host]:
    """The second host, with a program that receives on ``_PORT``."""
    with two[1].popen([sys.executable, "-c", _RECEIVE]) as process:
        _until(lambda: _PORT in two[1].listening_ports())
        yield two[1]
        process.kill()


def _until(happened: Callable[[], bool]) -> None:
    wait(happened, time.monotonic() + PATIENCE_S, lambda: "expected an event, found none in time")


def _send(host: Host, target: str, count_bytes: int) -> float:
    """Seconds from the first byte to the receiver's answer to the last."""
    done = host.run([sys.executable, "-c", _SEND, target, str(_PORT), str(count_bytes)], timeout_s=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


def _sshd(host: Host) -> socket.socket:
    """A connection to sshd that has said hello."""
    connection = socket.create_connection((host.address, 22), timeout=PATIENCE_S)
    assert connection.recv(100).startswith(b"SSH-2.0-")
    return connection


def test_a_host_has_its_own_name(two: FakeHosts) -> None:
    assert [host.run(["hostname"]).stdout for host in two] == ["h1\n", "h2\n"]
    assert socket.gethostname() not in ("h1", "h2")


def test_what_a_host_writes_is_there_for_that_host_only(two: FakeHosts) -> None:
    for path in ("/etc/fake", "/tmp/fake", "/opt/a/b/fake", "~/.launch/fake"):
        two[0].write(path, "mine\n", 0o600)
        assert two[0].read(path) == "mine\n"
        assert not two[1].exists(path)
        assert not Path(path).expanduser().exists()
    assert two[0].run(["stat", "-c", "%a", "/etc/fake"]).stdout == "600\n"
    assert [(two.written(host) / "opt/a/b/fake").exists() for host in two] == [True, False]


def test_reading_a_file_that_is_not_there_names_host_and_file(two: FakeHosts) -> None:
    with pytest.raises(HostError, match=r"h1.*/etc/nothing.*No such file"):
        two[0].read("/etc/nothing")


def test_this_machines_python_and_its_packages_work_on_a_host(two: FakeHosts) -> None:
    done = two[0].run([sys.executable, "-c", "import pytest, socket; print(socket.gethostname())"])
    assert (done.stdout, done.stderr) == ("h1\n", "")


def test_a_host_lists_its_own_processes_and_no_others(two: FakeHosts) -> None:
    with two[0].popen(["sleep", "1000"]) as sleeper:
        _until(lambda: [process.argv for process in two[0].processes()] == [("sleep", "1000")])
        assert two[1].processes() == []
        sleeper.kill()
    _until(lambda: two[0].processes() == [])


def test_the_number_of_a_listed_process_is_the_one_the_host_knows(two: FakeHosts) -> None:
    number = two[0].run(["sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!"]).stdout
    assert two[0].processes() == [Process(int(number), ("sleep", "1000"))]


def test_an_orphan_that_ends_leaves_no_zombie(two: FakeHosts) -> None:
    number = two[0].run(["sh", "-c", "sleep 0.01 >/dev/null 2>&1 & echo $!"]).stdout.strip()
    _until(lambda: not two[0].exists(f"/proc/{number}"))


def test_a_command_that_takes_too_long_is_ended_inside_the_host(two: FakeHosts) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        two[0].run(["sleep", "1000"], timeout_s=0.1)
    _until(lambda: two[0].processes() == [])


def test_listening_ports_are_the_hosts_own(two: FakeHosts, receiver: Host) -> None:
    assert (two[0].listening_ports(), receiver.listening_ports()) == ([], [_PORT])


def test_two_hosts_reach_each_other_by_name(two: FakeHosts, receiver: Host) -> None:
    assert _send(two[0], receiver.name, 1000) > 0


def test_a_power_cut_ends_everything_at_once_and_the_port_no_longer_answers(two: FakeHosts, receiver: Host) -> None:
    receiver.power_cut()
    assert not receiver.powered
    with pytest.raises(OSError):
        socket.create_connection((receiver.address, _PORT), timeout=_SILENCE_S)
    with pytest.raises(HostError, match="h2: expected a running host, found it powered off"):
        receiver.processes()


def test_a_power_cut_says_nothing_to_those_connected(two: FakeHosts) -> None:
    with _sshd(two[0]) as connection:
        two[0].power_cut()
        connection.settimeout(_SILENCE_S)
        with pytest.raises(socket.timeout):
            connection.recv(1)


def test_power_back_on_boots_the_same_host_with_its_files_but_an_empty_tmp(two: FakeHosts) -> None:
    two[0].write("~/kept", "still here")
    two[0].write("/tmp/lost", "")
    two[0].power_cut()
    two[0].power_on()
    assert two[0].read("~/kept") == "still here"
    assert not two[0].exists("/tmp/lost")
    assert two[0].run(["hostname"]).stdout == "h1\n"
    _sshd(two[0]).close()


def test_a_pulled_cable_is_silence_and_plugging_it_in_heals_the_connection(two: FakeHosts) -> None:
    with _sshd(two[0]) as connection:
        two[0].unplug()
        with pytest.raises(OSError):
            socket.create_connection((two[0].address, 22), timeout=_SILENCE_S)
        connection.sendall(b"SSH-2.0-test\r\n")
        connection.settimeout(_SILENCE_S)
        with pytest.raises(socket.timeout):
            connection.recv(1)
        assert two[0].run(["true"]).returncode == 0  # its console needs no cable
        two[0].plug()
        connection.settimeout(PATIENCE_S)
        assert connection.recv(1)  # sshd's key exchange, now that it heard us
    _sshd(two[0]).close()


def test_a_host_that_boots_without_its_cable_answers_once_it_is_plugged_in(two: FakeHosts) -> None:
    two[0].unplug()
    two[0].power_cut()
    two[0].power_on()
    assert two[0].powered
    two[0].plug()
    _until(lambda: 22 in _answering(two[0]))


def _answering(host: Host) -> Iterator[int]:
    try:
        _sshd(host).close()
    except OSError:
        return
    yield 22


def test_a_hosts_card_counts_what_it_sends_and_receives_and_no_loopback(two: FakeHosts, receiver: Host) -> None:
    size_bytes = 4_000_000
    before = [host.traffic() for host in two]
    _send(two[0], receiver.name, size_bytes)
    _send(receiver, "127.0.0.1", size_bytes)
    sender_sent = two[0].traffic().sent - before[0].sent
    receiver_received = two[1].traffic().received - before[1].received
    assert size_bytes < sender_sent < 1.1 * size_bytes
    assert size_bytes < receiver_received < 1.1 * size_bytes


def test_shaping_limits_the_rate_both_ways_until_it_is_taken_away(two: FakeHosts, receiver: Host) -> None:
    size_bytes = 4_000_000  # 0.64 s at 50 Mbit/s
    two[0].shape(50)
    sent_s = _send(two[0], receiver.name, size_bytes)
    two[0].unshape()
    receiver.shape(50)
    received_s = _send(two[0], receiver.name, size_bytes)
    receiver.unshape()
    assert min(sent_s, received_s) > 0.5
    _until(lambda: _send(two[0], receiver.name, size_bytes) < 0.2)  # once this machine has a moment for it


def test_a_shaped_host_is_shaped_after_a_power_cut(two: FakeHosts) -> None:
    two[0].shape(50)
    two[0].power_cut()
    two[0].power_on()
    assert "rate 50Mbit" in two[0].run(["tc", "qdisc", "show", "dev", "eth0"]).stdout


def test_two_sessions_of_hosts_coexist(two: FakeHosts, fake_hosts: Callable[..., FakeHosts]) -> None:
    with fake_hosts(1) as other:
        assert other[0].name == two[0].name
        assert other[0].address != two[0].address
        _sshd(other[0]).close()
    _sshd(two[0]).close()


@pytest.mark.parametrize("count", few([16, 64], [16]))
def test_many_hosts_boot(fake_hosts: Callable[..., FakeHosts], count: int) -> None:
    hosts = fake_hosts(count)
    assert len({host.address for host in hosts}) == count
    for host in hosts:
        _sshd(host).close()


@pytest.mark.parametrize("count", [0, 251])
def test_a_count_that_a_subnet_cannot_hold_is_refused(fake_hosts: Callable[..., FakeHosts], count: int) -> None:
    with pytest.raises(HostError, match=f"expected 1 to 250 fake hosts, found {count}"):
        fake_hosts(count)
