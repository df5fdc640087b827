"""What the text of ``ssh`` means: the problem, its kind, the next step; and which failure may pass by itself."""

from typing import Optional

import pytest

from cluster.spec.model import Ssh
from launch.errors import HostProblem, ProblemKind
from launch.openssh.refusals import explain, may_pass
from launch.openssh.ssh_program import SshProgram

LOST = "Connection closed by UNKNOWN port 65535\r\n"
CHANGED = """@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
Offending ED25519 key in /home/me/known hosts:7
Host key for [gw]:2200 has changed and you have requested strict checking.
Host key verification failed.
"""
REVOKED = "The ED25519 host key for gw is marked as revoked.\nHost key verification failed.\n"


def problem(stderr: str) -> HostProblem:
    found = explain(SshProgram("h1", Ssh(connect_timeout_s=3)), stderr)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("stderr", "kind", "text"),
    [
        ("me@gw: Permission denied (publickey).\r\n" + LOST, ProblemKind.AUTHENTICATION,
         "login refused (me@gw: Permission denied (publickey)); try `ssh h1`; if that asks for a passphrase"),
        ("me@h1: Permission denied (gssapi-with-mic,keyboard-interactive).", ProblemKind.AUTHENTICATION,
         "login refused (me@h1: Permission denied (gssapi-with-mic,keyboard-interactive)); try `ssh h1`; if that asks "
         "for a password or a code, first set ControlPath and log in with `ssh -MNf h1`"),
        ("Received disconnect from 10.0.0.1 port 22:2: Too many authentication failures\nDisconnected from 10.0.0.1",
         ProblemKind.AUTHENTICATION, "login refused (Too many authentication failures)"),
        ("Host key verification failed.\r\n" + LOST, ProblemKind.HOST_KEY,
         "ssh knows no host key of this host, or of a gateway before it; verify the key, then accept it with `ssh "),
        ("No ED25519 host key is known for h1 and you have requested strict checking.\nHost key verification failed.",
         ProblemKind.HOST_KEY, "ssh knows no host key of this host"),
        (CHANGED, ProblemKind.HOST_KEY, "the host key of [gw]:2200 differs from the one in /home/me/known hosts: a re"),
        (REVOKED, ProblemKind.HOST_KEY, "the host key of gw is revoked: an intercepted connection, or an old key"),
        ("ssh: Could not resolve hostname h9: Name or service not known\r\n", ProblemKind.UNKNOWN_NAME,
         "this machine cannot resolve the name h9 (Name or service not known); see `getent hosts h9`"),
        ("ssh: connect to host h1 port 22: Connection refused\r\n", ProblemKind.UNREACHABLE,
         "no SSH at h1 port 22 (Connection refused); check that the host is up and runs sshd"),
        ("ssh: connect to host gw port 22: No route to host\r\n" + LOST, ProblemKind.UNREACHABLE,
         "no SSH at gw port 22 (No route to host)"),
        ("ssh: connect to host h1 port 22: Connection timed out\r\n", ProblemKind.UNREACHABLE,
         "no answer from h1 port 22 within 3 s; check that the host is up"),
        ("Connection timed out during banner exchange\r\nConnection to 10.0.0.1 port 22 timed out\r\n",
         ProblemKind.UNREACHABLE, "no answer from 10.0.0.1 port 22 within 3 s"),
        ("Connection timed out during banner exchange\nConnection to UNKNOWN port 65535 timed out\n",
         ProblemKind.UNREACHABLE, "no answer within 3 s through its gateway"),
        ("channel 0: open failed: connect failed: No route to host\nstdio forwarding failed\n" + LOST,
         ProblemKind.UNREACHABLE, "the gateway cannot reach it (connect failed: No route to host); check that the h"),
        ("/home/me/.ssh/config: line 3: Bad configuration option: foo\r\nterminating\r\n", ProblemKind.HERE,
         "the SSH configuration: /home/me/.ssh/config: line 3: Bad configuration option: foo; correct it; see `ssh -G"),
        ("/home/me/.ssh/config line 7: Missing argument.\r\n", ProblemKind.HERE,
         "the SSH configuration: /home/me/.ssh/config line 7: Missing argument.; correct it"),
        ("/bin/sh: 1: exec: corkscrew: not found\n" + LOST, ProblemKind.UNREACHABLE,
         "its gateway or ProxyCommand ended before it was connected (/bin/sh: 1: exec: corkscrew: not found); try"),
        ("kex_exchange_identification: Connection closed by remote host\r\nConnection closed by 10.0.0.1 port 22\r\n",
         ProblemKind.SSHD, "sshd drops every login (kex_exchange_identification: Connection closed by remote host); "),
        ("Connection closed by 10.0.0.1 port 22\r\n", ProblemKind.AUTHENTICATION,
         "sshd ended the login (Connection closed by 10.0.0.1 port 22); see sshd's log there"),
    ],
)  # fmt: skip
def test_a_text_of_ssh_is_a_problem_with_what_to_do_next(stderr: str, kind: ProblemKind, text: str) -> None:
    found = problem(f"Authorized use only!\n{stderr}" if "UNKNOWN" not in stderr else stderr)
    assert found.kind is kind and found.reason.startswith(text)


def test_the_command_that_forgets_a_changed_key_names_its_own_entry() -> None:
    assert "`ssh-keygen -R '[gw]:2200' -f '/home/me/known hosts'`" in problem(CHANGED).advice


@pytest.mark.parametrize(
    "text", ["", "sh: 1: python9: not found", "Traceback: no such module\n", "/opt/x.sh: line 3: y: unbound variable\n"]
)
def test_the_text_of_a_program_is_none_of_ssh(text: str) -> None:
    assert explain(SshProgram("h1", Ssh()), text) is None


@pytest.mark.parametrize(
    ("stderr", "passes"),
    [
        ("kex_exchange_identification: read: Connection reset by peer\r\n", True),
        ("ssh_exchange_identification: Connection closed by remote host\n", True),
        ("me@h1: Permission denied (publickey).", False),
        ("Connection closed by 10.0.0.1 port 22\r\n", False),
        ("Host key verification failed.", False),
        (
            "me@gw: Permission denied (publickey).\r\nkex_exchange_identification: Connection closed by remote host",
            False,
        ),
    ],
)
def test_only_a_login_that_was_dropped_before_any_refusal_is_tried_again(stderr: str, passes: bool) -> None:
    """OpenSSH 9.8 keeps out for longer with each refused login (PerSourcePenalties)."""
    assert may_pass(problem(stderr)) is passes


@pytest.mark.parametrize("error", [OSError(), HostProblem("h1", ProblemKind.UNREACHABLE, "no answer")])
def test_no_other_failure_passes_by_itself(error: Optional[Exception]) -> None:
    assert error is not None and not may_pass(error)
