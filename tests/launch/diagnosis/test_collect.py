"""All hosts are asked side by side; one that is silent, or breaks off, costs its own part only."""

import json
from typing import Any, List

from launch.agent.text import Redaction
from launch.diagnosis.collect import LEAST_BYTES, MOST_BYTES, HostReport, gather
from launch.hosts.channel import Silence
from tests.support.launch.fakes import FakeChannel, FakeHost, fleet_of

TIMES = [{"time": 0.0}] * 6


def lines(*values: Any) -> List[bytes]:
    """What a host says."""
    return [json.dumps(each).encode() + b"\n" for each in [{"missing": []}, *TIMES, *values]]


TOLD = [
    {"file": "places.json", "json": {"/a": 1}}, {"file": "places.json", "json": {"/b": 2}},
    {"file": "agent.log", "text": "hello"}, {"missing": "gpus", "why": "not done within 9 s"},
    {"done": True, "run": "r-1"},
]  # fmt: skip


def test_every_host_s_pieces_are_kept_and_parts_of_one_joined() -> None:
    channel = FakeChannel(*lines(*TOLD))
    with fleet_of({"a": FakeHost("a", channel)}) as fleet:
        (found,) = gather(fleet, 60.0)
    assert found.files == {"places.json": {"/a": 1, "/b": 2}, "agent.log": "hello"}
    assert (found.missing, found.run, found.problem) == ({"gpus": "not done within 9 s"}, "r-1", None)
    assert found.facts.clock is not None and found.seconds is not None and channel.closed
    asked = json.loads(channel.sent.splitlines()[-1].decode())
    assert (asked["do"], asked["python"], asked["bytes"]) == ("gather", "py", MOST_BYTES)


def test_what_came_before_a_host_fell_silent_counts() -> None:
    hosts = {
        "a": FakeHost("a", FakeChannel(*lines(*TOLD))),
        "b": FakeHost("b", FakeChannel(*lines(*TOLD[:3]), Silence())),
        "c": FakeHost("c", FakeChannel(*lines(*TOLD[:1]))),
        "d": FakeHost("d"),
    }
    with fleet_of(hosts) as fleet:
        a, b, c, d = gather(fleet, 60.0)
    assert a.problem is None and len(a.files) == 2
    assert b.problem == "no answer within 25 s" and b.files["agent.log"] == "hello"
    assert "ended there" in str(c.problem) and "places.json" in c.files
    assert (d.problem, d.files) == ("out of reach", {})


def test_many_hosts_share_what_may_be_told() -> None:
    channels = [FakeChannel(*lines({"done": True, "run": None})) for _ in range(900)]
    hosts = {f"h{number}": FakeHost(f"h{number}", channel) for number, channel in enumerate(channels)}
    with fleet_of(hosts) as fleet:
        assert len(gather(fleet, 60.0)) == 900
    assert json.loads(channels[0].sent.splitlines()[-1].decode())["bytes"] == LEAST_BYTES


def test_a_secret_that_only_this_terminal_knows_is_taken_out_here() -> None:
    evidence = HostReport("a")
    redaction = Redaction(["correct-horse"])
    assert not evidence.take({"file": "x", "text": "correct-horse"}, redaction)
    assert not evidence.take({"file": "y", "json": ["correct-horse"]}, redaction)
    assert evidence.files == {"x": "(secret)", "y": ["(secret)"]}


def test_what_is_larger_than_the_room_that_is_left_is_named_and_not_kept() -> None:
    evidence = HostReport("a", room=10)
    for file, text in (("a.txt", "x" * 6), ("b.txt", "x" * 6), ("c.txt", "x" * 4)):
        assert not evidence.take({"file": file, "text": text}, Redaction())
    assert sorted(evidence.files) == ["a.txt", "c.txt"]
    assert evidence.missing == {"b.txt": "6 bytes, but only 4 bytes are left"}


def test_the_last_piece_is_known() -> None:
    assert HostReport("a").take({"done": True, "run": None}, Redaction())
