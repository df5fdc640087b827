"""The command of ``ssh``: what the hosts file chooses, what is fixed, and the commands for a person."""

import shlex
from dataclasses import replace
from typing import Any, Dict, List

import pytest

from cluster.spec.model import Ssh
from launch.openssh.ssh_program import SshProgram, environment, forget, gateways_before


def options(argv: List[str]) -> Dict[str, str]:
    """The options of a command by their names; of several the first, which counts."""
    pairs = [argv[place + 1].split("=", 1) for place, word in enumerate(argv) if word == "-o"]
    return dict(reversed([(name, value) for name, value in pairs]))


def test_nothing_asks_and_nothing_is_forwarded_and_every_wait_is_bounded() -> None:
    argv = SshProgram("h1", Ssh(connect_timeout_s=2.5)).argv("true")
    found = options(argv)
    assert {
        "BatchMode": "yes",
        "ForwardAgent": "no",
        "ClearAllForwardings": "yes",
        "RemoteCommand": "none",
    }.items() <= (found.items())
    assert (found["ConnectTimeout"], found["ServerAliveInterval"], found["ServerAliveCountMax"]) == ("3", "5", "3")
    assert "StrictHostKeyChecking" not in found  # OpenSSH's own, which refuses where it cannot ask
    assert argv[-3:] == ["--", "h1", "true"]


def test_options_of_a_program_count_before_the_fixed_ones() -> None:
    assert options(SshProgram("h1", Ssh()).argv("true", "BatchMode=no"))["BatchMode"] == "no"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Ssh(), "h1"),
        (Ssh(user="al", port=22), "-l al -p 22 h1"),
        (Ssh(config=None), "-F none h1"),
        (Ssh(config="/nowhere/config"), "-F none h1"),
        (Ssh(key="/k 1", gateway="a, me@b:2200"), "-J a,me@b:2200 -i '/k 1' h1"),
        (Ssh(gateway="a,h1,b"), "-J a h1"),
        (Ssh(user="a b;c"), "-l 'a b;c' h1"),
        (Ssh(known_hosts="/k 1"), "-o 'UserKnownHostsFile=\"/k 1\"' h1"),
    ],
)
def test_every_key_of_the_section_ssh_is_passed_on(settings: Ssh, words: str) -> None:
    program = SshProgram("h1", settings)
    assert program.login() == f"ssh {words}"
    assert " ".join(map(shlex.quote, program.argv("true"))).endswith(words.replace("h1", "-- h1 true"))


@pytest.mark.parametrize(("known", "files"), [
    ("", {"UserKnownHostsFile": "/k"}),
    ("/other", {"UserKnownHostsFile": "/other", "GlobalKnownHostsFile": "/dev/null"}),
])  # fmt: skip
def test_a_key_is_accepted_by_a_person_alone_and_over_a_new_connection(known: str, files: Dict[str, str]) -> None:
    words = shlex.split(SshProgram("h1", Ssh(known_hosts="/k")).accept(known))
    assert options(words) == {"StrictHostKeyChecking": "ask", "ControlPath": "none", **files}
    assert words[-2:] == ["h1", "true"]


def test_a_path_that_begins_with_a_tilde_works_in_quotes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/al ice")
    assert shlex.split(forget("h1", "~/k"))[-1] == "/home/al ice/k"
    assert 'UserKnownHostsFile="/home/al ice/k"' in shlex.split(SshProgram("h1", Ssh()).accept("~/k"))


@pytest.mark.parametrize(
    ("gateway", "before"), [(None, []), ("", []), ("a", ["a"]), ("a, b", ["a", "b"]), ("h1", []), ("a,h1", ["a"])]
)
def test_a_host_that_is_a_gateway_itself_is_reached_through_those_before_it(gateway: Any, before: List[str]) -> None:
    assert gateways_before("h1", gateway) == before


def test_the_environment_has_no_secret_and_no_window_that_asks() -> None:
    environ = {"PATH": "/bin", "TOKEN": "x", "SSH_AUTH_SOCK": "/a"}
    assert environment(environ, ["TOKEN"]) == {"PATH": "/bin", "SSH_AUTH_SOCK": "/a", "SSH_ASKPASS_REQUIRE": "never"}


def test_the_settings_that_only_the_launcher_has_reach_no_command() -> None:
    one, other = (SshProgram("h1", replace(Ssh(), fanout=count)).argv("true") for count in (1, 200))
    assert one == other
