"""The options for a host are those of OpenSSH's own client, which is run beside as the reference."""

import os
import random
import re
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Any, List, Mapping, Optional

import pytest

from cluster.spec.model import Ssh
from launch.errors import HostProblem
from launch.remote.access import Access
from launch.remote.ssh_options import SshOptions
from tests.support.waiting import eventually

LACKS = "needs ssh: this machine lacks it (apt-get install openssh-client)"
with_ssh = pytest.mark.skipif(shutil.which("ssh") is None, reason=LACKS)
HOME = os.path.expanduser("~")
# Written by gcloud, Teleport's tsh, Vagrant and SkyPilot, and the file that Fedora and RHEL have in /etc/ssh.
GCLOUD = """
Host gpu01
    HostName 35.1.2.3
    IdentityFile /home/me/.ssh/google_compute_engine
    UserKnownHostsFile=/home/me/.ssh/google_compute_known_hosts
    HostKeyAlias=compute.123456
    IdentitiesOnly=yes
    CheckHostIP=no
"""
TSH = """
Host *.teleport.example.com teleport.example.com
    UserKnownHostsFile "/home/me/.tsh/known_hosts"
    IdentityFile "/home/me/.tsh/keys/teleport.example.com/me"
    CertificateFile "/home/me/.tsh/keys/teleport.example.com/me-ssh/teleport-cert.pub"
    HostKeyAlgorithms rsa-sha2-512-cert-v01@openssh.com,rsa-sha2-256-cert-v01@openssh.com
Host *.teleport.example.com !teleport.example.com
    Port 3022
    ProxyCommand "/usr/local/bin/tsh" proxy ssh --cluster=teleport.example.com --proxy=teleport.example.com:443 %r@%h:%p
"""
VAGRANT = """
Host default
  HostName 127.0.0.1
  User vagrant
  Port 2222
  UserKnownHostsFile /dev/null
  StrictHostKeyChecking no
  PasswordAuthentication no
  IdentityFile "/home/me/my boxes/.vagrant/machines/default/private_key"
  IdentitiesOnly yes
  LogLevel FATAL
"""
SKYPILOT = """
# Added by sky (use `sky stop/start/down train` to stop/start/delete)
Host train
  HostName 10.3.2.1
  User ubuntu
  IdentityFile ~/.ssh/sky-key
  IdentitiesOnly yes
  ForwardAgent yes
  StrictHostKeyChecking no
  UserKnownHostsFile=/dev/null
  GlobalKnownHostsFile=/dev/null
  Port 22
  ProxyCommand ssh -tt -i ~/.ssh/sky-key -W '[%h]:%p' ubuntu@10.0.0.1
"""
FEDORA = "Include {folder}/redhat.conf\nHost *\n  User me\n"
REDHAT = "Match final all\n  GSSAPIAuthentication yes\n  ServerAliveInterval 9\nHost later\n  Port 9\n"


def options(folder: Path, host: str, text: str, user: Optional[str] = None, **files: str) -> Mapping[str, Any]:
    for name, more in {**files, "config": text}.items():
        (folder / name).write_bytes(more.replace("{folder}", str(folder)).encode("latin-1"))
    return SshOptions(str(folder / "config"), 5.0).about(host, user)


@with_ssh
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Host gpu*\n  Include {folder}/one\nHost *\n  User later\n", {"user": "later"}),
        ("Match host=cpu01\n  User matched\n", {"user": "matched"}),
        ("Match final all\n  User last\n", {"user": "last"}),
        ("Port 2200 # ssh\nUser bob # me\n", {"port": "2200", "user": "bob"}),
        ("# caf\xe9\nUser bob\n", {"user": "bob"}),
        ("CanonicalizeFallbackLocal no\nUser bob\n", {"user": "bob"}),
        ("Match user mine\n  Port 4\n", {"port": "4"}),
        ("Match originalhost cpu01 exec \"test %h = cpu01\"\n  Port 5\n", {"port": "5"}),
        ("IdentityFile ${HOME}/k\nIdentityFile ~/%n_%r\n", {"identityfile": [f"{HOME}/k", f"{HOME}/cpu01_mine"]}),
        ("ProxyCommand nc %h %p %% 2>/dev/null\n", {"proxycommand": "nc cpu01 22 % 2>/dev/null"}),
        ("ProxyJump ssh://me@gw:2222,ssh://b\n", {"proxyjump": "me@gw:2222,b"}),
        ("ProxyJump none\n", {}),
        ("UserKnownHostsFile ~/kh_%h\n", {"userknownhostsfile": f"{HOME}/kh_cpu01"}),
        ("IdentityAgent none\n", {"identityagent": "none"}),
    ],
)  # fmt: skip
def test_what_a_line_means_is_what_openssh_makes_of_it(tmp_path: Path, text: str, expected: Mapping[str, Any]) -> None:
    usual = {"hostname": "cpu01", "user": "mine", "port": "22"}
    mine = None if "user" in expected else "mine"
    found = options(tmp_path, "cpu01", text, mine, one="Host *\n  User first\n  Port 7\n")
    assert found == {**usual, **expected}


@with_ssh
@pytest.mark.parametrize(
    ("host", "text", "expected"),
    [
        ("gpu01", GCLOUD, {
            "hostname": "35.1.2.3", "identityfile": ["/home/me/.ssh/google_compute_engine"], "identitiesonly": "yes",
            "userknownhostsfile": "/home/me/.ssh/google_compute_known_hosts", "hostkeyalias": "compute.123456",
        }),
        ("node.teleport.example.com", TSH, {
            "port": "3022", "userknownhostsfile": "/home/me/.tsh/known_hosts",
            "identityfile": ["/home/me/.tsh/keys/teleport.example.com/me"],
            "proxycommand": "\"/usr/local/bin/tsh\" proxy ssh --cluster=teleport.example.com"
                            " --proxy=teleport.example.com:443 me@node.teleport.example.com:3022",
        }),
        ("default", VAGRANT, {
            "hostname": "127.0.0.1", "user": "vagrant", "port": "2222", "userknownhostsfile": "/dev/null",
            "identityfile": ["/home/me/my boxes/.vagrant/machines/default/private_key"], "identitiesonly": "yes",
        }),
        ("train", SKYPILOT, {
            "hostname": "10.3.2.1", "user": "ubuntu", "userknownhostsfile": "/dev/null",
            "globalknownhostsfile": "/dev/null", "identityfile": [f"{HOME}/.ssh/sky-key"], "identitiesonly": "yes",
            "proxycommand": "ssh -tt -i ~/.ssh/sky-key -W '[10.3.2.1]:22' ubuntu@10.0.0.1",
        }),
        ("later", FEDORA, {"user": "me", "port": "9"}),
    ],
    ids=["gcloud", "tsh", "vagrant", "skypilot", "fedora"],
)  # fmt: skip
def test_files_that_tools_write(tmp_path: Path, host: str, text: str, expected: Mapping[str, Any]) -> None:
    user = None if "user" in expected else "me"
    found = options(tmp_path, host, text, user, **{"redhat.conf": REDHAT})
    assert found == {"hostname": host, "user": "me", "port": "22", **expected}


@with_ssh
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Host a\n  Foo 1\n", "config: line 2: Bad configuration option: foo"),
        ("Port\n", "no argument after keyword"),
        ("Match nonsense\n", "Missing Match criteria for nonsense"),
    ],
)
def test_a_file_that_openssh_refuses_is_one_problem_with_its_line(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(HostProblem, match=f"the SSH configuration: .*{re.escape(reason)}"):
        options(tmp_path, "a", text)


@with_ssh
def test_a_command_of_the_file_that_does_not_end_is_one_problem(tmp_path: Path) -> None:
    (tmp_path / "config").write_text('Match exec "sleep 60"\n  User me\n')
    with pytest.raises(HostProblem, match=r"expected an answer of `ssh -G a` within 0\.2 s") as found:
        SshOptions(str(tmp_path / "config"), 0.2).about("a")
    assert "Match exec" in found.value.advice


HOSTS = ("gpu01", "gpu02", "cpu01", "gw")


def drawn(seed: int) -> str:
    """A configuration as people write them: sections, patterns, quotation marks, comments, files that are included."""
    draw = random.Random(seed)

    def word(key: str) -> str:
        address = f"10.0.0.{draw.randrange(9)}"
        value = draw.choice({"User": ["ann", "bob"], "Port": ["22", "2201"], "HostName": [address, "%h.lan"]}[key])
        value = draw.choice([value, value, f'"{value}"'])
        key = draw.choice([key, key.lower(), key.upper()])
        return f"{key}{draw.choice([' ', '  ', '=', ' = '])}{value}{draw.choice(['', '', ' # a comment'])}"

    def section() -> List[str]:
        head = draw.choice([
            "Host gpu*", "Host gpu01 gw", "Host * !gw", "Host gpu0?", 'Host "cpu01"', "Match host gpu*",
            "Match originalhost gpu01,cpu01", "Match final all", "Match all", "Match user ann", "Match !host gw",
            "Match localuser nobody", 'Match exec "test %n = gpu02"',
        ])  # fmt: skip
        some = draw.sample(["User", "Port", "HostName"], draw.randrange(1, 4))
        more = ["  Include {folder}/more"] if draw.random() < 0.3 else []
        return [head, *(f"  {word(key)}" for key in some), *more]

    lines = [word("Port")] if draw.random() < 0.2 else []
    for _ in range(draw.randrange(1, 5)):
        lines += section()
    return "\n".join(lines) + "\n"


def _is_written(path: Path) -> bool:
    return path.is_file() and path.read_text().endswith("\n")


def dialled(connection: Any) -> List[str]:
    return [connection.user, connection.host, str(connection.port)]


@with_ssh
@pytest.mark.parametrize("seed", range(60))
def test_what_fabric_dials_is_what_ssh_dials(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenSSH itself is the reference: a ProxyCommand prints what it dials."""
    for name, text in (("config", drawn(seed)), ("more", drawn(1000 + seed).replace("  Include {folder}/more\n", ""))):
        (tmp_path / name).write_text(text.replace("{folder}", str(tmp_path)))
    made: List[Any] = []
    monkeypatch.setattr("launch.remote.access._log_in", made.append)
    user = random.Random(seed).choice([None, "ann"])
    access = Access(Ssh(config=str(tmp_path / "config"), user=user), ask=lambda path: "")
    for host in HOSTS:
        access.prepare(host)
        with pytest.raises(AttributeError, match="set_keepalive"):  # it has not logged in
            access.open(host)
        dials = tmp_path / host
        argv = ["ssh", "-F", str(tmp_path / "config"), "-o", f"ProxyCommand=echo %r %h %p | tee {dials}"]
        argv += ["-o", "BatchMode=yes", *(["-l", user] if user else []), host, "true"]
        subprocess.run(argv, stderr=subprocess.PIPE, check=False)
        eventually("what OpenSSH dials", partial(_is_written, dials))
        assert dials.read_text().split() == dialled(made[-1])
    access.close()


@pytest.mark.parametrize(
    ("text", "line"),
    [("Match host a\n  User b\n", 1), ("Host a\n  Include b\n", 2), ("User bob # me\n", 1), ('User "bob"\n', 1),
     ("Host a\n  Port\n", 2), ("CanonicalizeHostname yes\n", 1)],
)  # fmt: skip
def test_without_openssh_a_line_that_may_mean_another_thing_is_refused(
    tmp_path: Path, text: str, line: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(HostProblem, match=re.escape(f"{tmp_path}/config:{line}: expected plain options")):
        options(tmp_path, "a", text)
    plain = options(tmp_path, "a", "# me\n\nHost a\n  User = bob\n  IdentityFile ~/k\n")
    assert plain == {"hostname": "a", "user": "bob", "identityfile": [f"{HOME}/k"]}
