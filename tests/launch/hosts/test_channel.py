"""A conversation with a program: whole JSON lines out of whatever pieces they come in, and no wait without an end."""

import json
import os
import sys
from typing import Any, List

import pytest

from launch.agent.linux.processes import inspect
from launch.errors import HostProblem
from launch.hosts import channel
from launch.hosts.channel import Noise, Silence
from launch.hosts.local_host import LocalChannel, LocalHost
from tests.support.launch.fakes import FakeChannel
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.not_fast  # starts programs, by what it tests


def heard(*script: Any, times: int) -> List[Any]:
    channel = FakeChannel(*script)
    return [channel.receive_line(1.0) for _ in range(times)]


# -- lines


def test_lines_come_whole_however_they_were_cut() -> None:
    assert heard(b'{"a"', b": 1}\n{", b'"b": 2}\n', times=3) == [{"a": 1}, {"b": 2}, None]


def test_many_lines_at_once_are_heard_one_by_one() -> None:
    assert heard(b'{"a": 1}\n{"a": 2}\n{"a": 3}\n', times=4) == [{"a": 1}, {"a": 2}, {"a": 3}, None]


def test_a_silence_in_the_middle_of_a_line_keeps_what_has_come() -> None:
    channel = FakeChannel(b'{"a": ', Silence(), b"1}\n")
    with pytest.raises(Silence):
        channel.receive_line(0.0)
    assert channel.receive_line(0.0) == {"a": 1}


def test_the_rest_of_a_line_that_never_ended_is_no_line() -> None:
    assert heard(b'{"a": 1}\n{"b"', times=3) == [{"a": 1}, None, None]


def test_what_is_said_is_one_line_of_json() -> None:
    channel = FakeChannel()
    channel.send_line({"do": "stop", "reason": "two\nlines"})
    assert channel.sent == b'{"do": "stop", "reason": "two\\nlines"}\n'


def test_what_a_terminal_would_obey_does_not_come_over_a_channel() -> None:
    told = json.dumps({"cause": "a\x1b]0;owned\x07b\nc"}).encode() + b"\n"
    assert heard(told, times=1) == [{"cause": "ab\nc"}]


def test_a_line_without_an_end_is_not_collected_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "LONGEST", 10)
    with pytest.raises(Noise, match=r"^expected a line of JSON, found 12 bytes without a line end$"):
        heard(b"[[[[[[", b"[[[[[[", b"[[[[[[", times=1)


@pytest.mark.parametrize(
    "line", [b"Welcome to gpu01!\n", b"[1]\n", b"\xff\xfe\n", b"\n", b'{"a":' * 50_000 + b"\n", b"[" * 50_000 + b"\n"]
)
def test_a_line_that_is_no_answer_is_shown(line: bytes) -> None:
    with pytest.raises(Noise, match=r"^expected a line of JSON, found "):
        heard(line, times=1)


# -- this machine


def test_a_program_here_is_spoken_to_until_it_ends() -> None:
    channel = LocalChannel(["sh", "-c", "read line; echo $line; echo complaint >&2"])
    channel.send_line({"a": 1})
    assert [channel.receive_line(PATIENCE_S), channel.receive_line(PATIENCE_S)] == [{"a": 1}, None]
    assert channel.complaint() == "complaint"
    channel.close()


def test_a_program_that_says_nothing_is_silent() -> None:
    channel = LocalChannel(["cat"])
    with pytest.raises(Silence):
        channel.receive_line(0.01)
    channel.send_line({"a": 1})
    assert channel.receive_line(PATIENCE_S) == {"a": 1}
    channel.close()


def test_more_than_a_pipe_holds_is_sent_and_received() -> None:
    channel = LocalChannel([sys.executable, "-c", "import sys; d = sys.stdin.readline(); print(d[:-1])"])
    channel.send_line({"a": "x" * 1_000_000})
    answer = channel.receive_line(PATIENCE_S)
    assert answer is not None and len(answer["a"]) == 1_000_000
    channel.close()


def test_to_say_something_to_a_program_that_has_gone_is_an_error() -> None:
    channel = LocalChannel(["true"])
    assert channel.receive_line(PATIENCE_S) is None
    with pytest.raises(OSError):
        for _ in range(100):
            channel.send(b"x" * 100_000)
    channel.close()


def test_a_complaint_of_any_length_does_not_hold_the_program_up() -> None:
    channel = LocalChannel(["sh", "-c", "yes no | head -n 200000 >&2; echo '{}'"])
    assert channel.receive_line(PATIENCE_S) == {}
    channel.close()


def test_a_program_sees_the_end_when_the_conversation_is_closed_and_is_reaped() -> None:
    channel = LocalChannel(["sh", "-c", "echo '{\"pid\": '$$'}'; cat"])
    answer = channel.receive_line(PATIENCE_S)
    assert answer is not None
    channel.close()
    assert inspect(answer["pid"]) is None


def test_ctrl_c_in_the_terminal_does_not_reach_a_program() -> None:
    channel = LocalChannel(["cat"])
    assert os.getsid(channel._process.pid) == channel._process.pid
    channel.close()


def test_a_program_that_cannot_be_started_leaves_no_file_open() -> None:
    before = os.listdir("/proc/self/fd")
    with pytest.raises(FileNotFoundError) as caught:
        LocalChannel(["/no/python"])
    assert os.listdir("/proc/self/fd") == before
    assert caught.value.filename == "/no/python"


def test_a_program_that_cannot_be_started_is_told_with_the_key_to_change() -> None:
    with pytest.raises(HostProblem) as caught:
        LocalHost("localhost", "/no/python").open(["/no/python", "-c", ""])
    assert str(caught.value) == "localhost: cannot start /no/python: No such file or directory; see the key python"


def test_a_tilde_at_the_front_means_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/bin")
    channel = LocalHost("localhost", "").open(["~/echo", "{}"])
    assert channel.receive_line(PATIENCE_S) == {}
    channel.close()
