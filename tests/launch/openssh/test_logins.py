"""The logins of all hosts: what this machine lacks for them is one problem, before any host is reached."""

from pathlib import Path

import pytest

from cluster.spec.model import Ssh
from launch.errors import HostProblem
from launch.openssh import openssh_host
from launch.openssh.openssh_host import Logins


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A PATH with the program ssh alone."""
    (tmp_path / "ssh").write_text("#!/bin/sh\n")
    (tmp_path / "ssh").chmod(0o755)
    return str(tmp_path)


def test_a_machine_without_ssh_is_named_with_the_other_transport(tmp_path: Path) -> None:
    with pytest.raises(HostProblem) as caught:
        Logins(Ssh(), {"PATH": str(tmp_path)})
    assert str(caught.value) == (
        "this machine: ssh.transport: openssh: expected ssh on PATH, found none; "
        "install the OpenSSH client, or use ssh.transport: fabric"
    )


def test_a_key_that_is_not_there_is_named(path: str) -> None:
    with pytest.raises(HostProblem, match=r"ssh\.key: expected a private key, found no file /nowhere/id"):
        Logins(Ssh(key="/nowhere/id"), {"PATH": path})


def test_sockets_lie_in_a_folder_of_this_user_alone_which_goes_with_the_logins(path: str) -> None:
    logins = Logins(Ssh(), {"PATH": path})
    one, other = logins.socket(), logins.socket()
    assert one.parent == other.parent and one != other and one.parent.stat().st_mode & 0o777 == 0o700
    assert len(f"{one}.0123456789abcdef") < 100  # ssh adds such an end, and a socket's path has at most 107 bytes
    logins.close()
    assert not one.parent.exists() and logins.ended.is_set()


def test_without_a_login_no_folder_is_made(path: str) -> None:
    before = set(Path("/tmp").glob("launch-ssh-*"))
    Logins(Ssh(), {"PATH": path}).close()
    assert set(Path("/tmp").glob("launch-ssh-*")) == before


def test_a_folder_for_sockets_that_cannot_be_made_is_a_problem_of_this_machine(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openssh_host, "SOCKETS", str(tmp_path / "none"))
    with pytest.raises(HostProblem) as caught:
        Logins(Ssh(), {"PATH": path}).socket()
    assert str(caught.value) == (
        "this machine: ssh.transport: openssh: expected a folder in which sockets can be made, "
        f"found {tmp_path}/none: no such file or directory; make room there, or use ssh.transport: fabric"
    )


def test_a_login_that_begins_after_the_end_makes_no_folder(path: str) -> None:
    """Ctrl-C may come while ``ssh`` is asked for a connection of the user's."""
    logins = Logins(Ssh(), {"PATH": path})
    logins.close()
    before = set(Path("/tmp").glob("launch-ssh-*"))
    with pytest.raises(HostProblem, match="its login was given up before it began"):
        logins.socket()
    assert set(Path("/tmp").glob("launch-ssh-*")) == before
