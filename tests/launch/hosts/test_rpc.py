"""A verb of the agent on a host: the code goes along where it is missing, and every way to fail has its words."""

import json
from typing import Any, Dict

import pytest

from launch.errors import HostProblem, ProblemKind
from launch.hosts.channel import Silence
from launch.hosts.rpc import MARK, MOST_NOISE, ask, contact
from tests.support.launch.fakes import CODE, FakeChannel, FakeHost

NOTHING_MISSING = b'{"missing": []}\n'


def line(values: Dict[str, Any]) -> bytes:
    return json.dumps(values).encode() + b"\n"


def refusal(channel: FakeChannel, python: str = "py") -> str:
    """Why ``ask`` gave up; the channel is closed then."""
    with pytest.raises(HostProblem) as caught:
        ask(FakeHost("h1", channel, python=python), CODE, "/w", "status", {"name": "r"}, timeout_s=3.0)
    assert channel.closed
    return str(caught.value)


def test_code_that_is_missing_is_sent_before_the_request() -> None:
    channel = FakeChannel(b'{"missing": ["launcher"]}\n', b'{"status": null}\n')
    assert ask(FakeHost("h1", channel), CODE, "/w", "status", {"name": "r"}, 3.0) == {"status": None}
    greeting, length, rest = channel.sent.split(b"\n", 2)
    assert json.loads(greeting.decode()) == {
        "workdir": "/w", "code": {"launcher": "1" * 16}, "verb": "status", "stay": 20.0,
    }  # fmt: skip
    code = CODE.bundles["launcher"].data
    assert int(length) == len(code) and rest == code + line({"name": "r"})
    assert channel.closed


def test_code_that_is_there_is_not_sent() -> None:
    channel = FakeChannel(NOTHING_MISSING)
    conversation = contact(FakeHost("h1", channel, python="py"), CODE, "/w", "attach", {"run": "r-1"})
    assert channel.sent.count(b"\n") == 2 and b"the code" not in channel.sent
    assert not channel.closed
    conversation.close()
    assert channel.closed


def test_a_program_that_has_answered_is_asked_again_and_asked_last_what_it_ends_with() -> None:
    channel = FakeChannel(NOTHING_MISSING, b'{"error": "no"}\n', NOTHING_MISSING, b'{"n": 2}\n', NOTHING_MISSING)
    host = FakeHost("h1", channel)
    host.keeps = True
    with pytest.raises(HostProblem):
        ask(host, CODE, "/w", "restart", {}, 3.0)
    assert ask(host, CODE, "/w", "restart", {}, 3.0) == {"n": 2}
    contact(host, CODE, "/w", "logs", {})
    greetings = [json.loads(each.decode()) for each in channel.sent.splitlines()[::2]]
    assert [(each["verb"], "stay" in each) for each in greetings] == [
        ("restart", True), ("restart", True), ("logs", False),
    ]  # fmt: skip
    assert len(host.opened) == 1 and not channel.closed


def test_a_host_that_is_closed_closes_what_it_kept() -> None:
    channel = FakeChannel(NOTHING_MISSING, b"{}\n")
    host = FakeHost("h1", channel)
    host.keeps = True
    ask(host, CODE, "/w", "restart", {}, 3.0)
    host.close()
    assert channel.closed == 1 and host.take_kept() is None


def test_a_program_that_may_have_gone_since_is_not_counted_on() -> None:
    old, new = FakeChannel(NOTHING_MISSING, b"{}\n"), FakeChannel(NOTHING_MISSING, b'{"n": 2}\n')
    host = FakeHost("h1", old, new)
    host.keeps = True
    ask(host, CODE, "/w", "restart", {}, 3.0, stay_s=0.5)
    assert ask(host, CODE, "/w", "restart", {}, 3.0) == {"n": 2}
    assert (old.closed, new.closed) == (1, 0)


def test_the_request_is_in_no_argument() -> None:
    host = FakeHost("h1", FakeChannel(NOTHING_MISSING))
    contact(host, CODE, "/w", "start", {"secrets": {"KEY": "hunter2"}})
    assert "hunter2" not in " ".join(host.opened[0]) and host.opened[0][:3] == ["py", "-S", "-c"]


def test_an_error_of_the_host_is_told_in_its_own_words() -> None:
    assert refusal(FakeChannel(b'{"error": "expected Python 3.7 or newer"}\n')) == "h1: expected Python 3.7 or newer"
    assert refusal(FakeChannel(NOTHING_MISSING, b'{"error": "port 2222 is taken"}\n')) == "h1: port 2222 is taken"


def test_the_kind_and_the_advice_of_a_host_s_answer_are_kept() -> None:
    answer = {"error": "/w: of bob", "kind": "folder", "advice": "choose another"}
    with pytest.raises(HostProblem, match=r"^h1: /w: of bob; choose another$") as caught:
        ask(FakeHost("h1", FakeChannel(line(answer))), CODE, "/w", "status", {}, 3.0)
    assert (caught.value.kind, caught.value.advice) == (ProblemKind.FOLDER, "choose another")


@pytest.mark.parametrize("kind", [None, "of a newer agent", ["folder"]])
def test_an_error_of_no_known_kind_is_a_refusal(kind: Any) -> None:
    problem = HostProblem.reported("h1", {"error": "no", "kind": kind})
    assert (problem.kind, str(problem)) == (ProblemKind.REFUSED, "h1: no")


@pytest.mark.parametrize(
    "complaint", ["sh: 1: exec: py: not found", "bash: line 1: py: command not found", "py: No such file or directory"]
)
def test_a_python_that_is_not_there_is_told_with_the_key_to_change(complaint: str) -> None:
    text = refusal(FakeChannel(complaint=f"motd\n{complaint}"))
    assert text == f"h1: no py there ({complaint}); install it, or name another with the key python"


def test_a_python_that_ends_without_an_answer_is_told_with_its_last_words() -> None:
    assert refusal(FakeChannel(complaint="Traceback …\nImportError: no zlib")) == (
        "h1: py ended before it answered: ImportError: no zlib"
    )
    assert refusal(FakeChannel(NOTHING_MISSING)) == "h1: py ended before it answered: it ended without output"


def greeted(*said: Any) -> Dict[str, Any]:
    """What ``ask`` returns from a host whose login shell says something first."""
    host = FakeHost("h1", FakeChannel(NOTHING_MISSING, b'{"n": 1}\n'))
    host.prints = said
    return ask(host, CODE, "/w", "restart", {}, 3.0)


def unbegun(*said: Any, complaint: str = "") -> str:
    """Why ``ask`` gave up a host whose login shell says something, and then no program of ours anything."""
    channel = FakeChannel(complaint=complaint)
    host = FakeHost("h1", channel, python="py")
    host.prints = said
    with pytest.raises(HostProblem) as caught:
        ask(host, CODE, "/w", "status", {}, 3.0)
    assert channel.closed
    return str(caught.value)


@pytest.mark.parametrize(
    "said",
    [
        (b"Welcome to h1!\n" + MARK,),
        (b"\xff no line end" + MARK[:5], MARK[5:]),
        (b'{"missing": ["launcher"]}\n', b"\n\n", MARK),
        (b"x" * MOST_NOISE, MARK),
    ],
)
def test_what_the_startup_files_of_a_shell_print_is_skipped(said: Any) -> None:
    assert greeted(*said) == {"n": 1}


def test_a_shell_that_prints_without_an_end_is_told_with_what_it_prints() -> None:
    assert unbegun(*[b"Welcome\x1b[2J to h1!\n" * 100] * 40) == (
        "h1: expected at most 65536 bytes before its answer, found more, such as 'Welcome to h1!'; "
        "let the shell's startup files print only in a terminal"
    )


def test_an_account_that_is_closed_says_so_on_stdout() -> None:
    assert unbegun(b"This account is currently not available.\n") == (
        "h1: py ended before it answered: This account is currently not available."
    )
    assert unbegun(b"Welcome\n", complaint="py: not found") == (
        "h1: no py there (py: not found); install it, or name another with the key python"
    )


def test_a_shell_that_asks_and_waits_is_told_with_its_question() -> None:
    assert unbegun(b"Welcome\nPASSCODE: ", Silence()) == "h1: py did not answer within 60 s; it printed 'PASSCODE:'"


@pytest.mark.parametrize(
    ("complaint", "told"),
    [
        ("sh: module: not found", "py ended before it answered: sh: module: not found; /bin/sh first runs the"),
        ("sh: exec: py: not found", "no py there (sh: exec: py: not found); install it"),
        ("no such module", "py ended before it answered: no such module; /bin/sh first runs the commands of the"),
    ],
)
def test_a_command_before_the_program_that_fails_is_told_and_not_taken_for_the_python(
    complaint: str, told: str
) -> None:
    host = FakeHost("h1", FakeChannel(complaint=complaint), python="/opt/py")
    host.prints, host.before = (), ("module load cuda",)
    with pytest.raises(HostProblem) as caught:
        ask(host, CODE, "/w", "status", {}, 3.0)
    assert str(caught.value).replace("/opt/", "").startswith(f"h1: {told}")


def test_a_program_that_is_asked_again_says_nothing_before_its_answer() -> None:
    host = FakeHost("h1", FakeChannel(NOTHING_MISSING, b"{}\n", NOTHING_MISSING, b'{"n": 2}\n'))
    host.keeps = True
    ask(host, CODE, "/w", "restart", {}, 3.0)
    assert ask(host, CODE, "/w", "restart", {}, 3.0) == {"n": 2}


def test_silence_is_told_with_how_long_it_was_waited_for() -> None:
    assert refusal(FakeChannel(Silence())) == "h1: py did not answer within 60 s"
    assert refusal(FakeChannel(NOTHING_MISSING, Silence())) == "h1: `status` was not answered within 3 s"


def test_a_connection_that_breaks_is_told() -> None:
    broken = OSError("Socket is closed")
    gone = FakeChannel(broken, complaint="sh: 1: exec: py: not found")
    assert (
        refusal(gone) == "h1: no py there (sh: 1: exec: py: not found); install it, or name another with the key python"
    )
    assert refusal(FakeChannel(broken, complaint="bye")) == "h1: the connection broke: Socket is closed; bye"
    assert refusal(FakeChannel(NOTHING_MISSING, broken)) == "h1: the connection broke during `status`: Socket is closed"


class Full(FakeChannel):
    """A program that ends, with its reason, while its code is sent to it."""

    def send(self, data: bytes) -> None:
        if data == CODE.bundles["launcher"].data:
            raise BrokenPipeError(32, "Broken pipe")
        super().send(data)


def test_a_program_that_takes_no_more_of_its_code_is_told_with_its_own_reason() -> None:
    reason = b'{"error": "cannot write the code under /w/code: No space left on device", "kind": "disk"}\n'
    missing = b'{"missing": ["launcher"]}\n'
    assert refusal(Full(missing, reason)) == "h1: cannot write the code under /w/code: No space left on device"
    assert refusal(Full(missing)) == "h1: the connection broke: [Errno 32] Broken pipe"
    assert refusal(Full(missing, Silence())) == "h1: the connection broke: [Errno 32] Broken pipe"
