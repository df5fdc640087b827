"""Whatever a host's channel does, a verb ends with a problem that names the host, or does what is documented.

Each verb has a conversation that goes well. Of it the tests make all that can go wrong: each line in turn is replaced
by what no program of ours says, and each value in each line is left out or becomes one of another kind.
"""

import itertools
import json
import time
import traceback
import tracemalloc
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple, Union

import pytest

from launch.environments import builder
from launch.errors import HostProblem, LaunchError, ProblemKind
from launch.hosts import channel
from launch.hosts.channel import CHUNK, LONGEST, Silence
from launch.hosts.rpc import ask
from launch.run import attached, follower, resume
from launch.verbs import board, export_files
from tests.launch.hosts.good_conversations import HOST, OTHER, READY, VERBS, Verb
from tests.support.launch.fakes import CODE, FakeChannel, FakeHost, fleet_of
from tests.support.nightly import few

Said = Union[bytes, Silence, OSError]

WEIRD: Dict[str, List[Said]] = {
    "silence": [Silence() for _ in range(30)],
    "garbage": [b"\xff\x00 no JSON \x1b[31m\n"],
    "a huge line": [b"x" * 1000 for _ in range(200)],
    "half a line": [b'{"half'],
    "nothing": [],
    "a list": [b"[1, 2]\n"],
    "null": [b"null\n"],
    "a number": [b"3\n"],
    "an empty object": [b"{}\n"],
    "an object of other keys": [b'{"colour": 1}\n'],
    "an error that is no text": [b'{"error": null}\n'],
    "an error": [b'{"error": "no", "kind": 3, "advice": []}\n'],
    "a deep line": [b"[" * 20000 + b"\n"],
    "a break": [OSError("reset")],
}
PARTS = 5  # of all changed values; each has every kind of value somewhere, since there are seven kinds
VALUES: List[Any] = [None, [], {}, "odd", 3, {"odd": None}, ["odd"]]


def line(values: Any) -> bytes:
    return json.dumps(values).encode() + b"\n"


def mutants(value: Any) -> Iterator[Any]:
    """``value`` with one thing in it left out, or of another kind."""
    if isinstance(value, dict):
        for key in value:
            yield {other: each for other, each in value.items() if other != key}
            yield from ({**value, key: changed} for changed in (*VALUES, *mutants(value[key])))
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield from ([*value[:place], changed, *value[place + 1 :]] for changed in (*VALUES, *mutants(each)))


def scripts(verb: Verb, replaced: Callable[[Any], Iterator[List[Said]]]) -> Iterator[List[List[Said]]]:
    """All the conversations of a verb, with one line of one of them replaced; what follows it is not said."""
    good = [[READY, *lines] for lines in verb.conversations]
    for number, lines in enumerate(good):
        for place, each in enumerate(lines):
            for instead in replaced(each):
                script: List[Said] = [*map(line, lines[:place]), *instead]
                before: List[List[Said]] = [[*map(line, whole)] for whole in good[:number]]
                after: List[List[Said]] = [[*map(line, whole)] for whole in good[number + 1 :]]
                yield [*before, script, *after]


def failure(verb: Verb, said: List[List[Said]], folder: Path) -> str:
    """Why a verb did not end as it should; empty where it did."""
    hosts = {HOST: FakeHost(HOST, *(FakeChannel(*script) for script in said))}
    if verb.others:
        hosts[OTHER] = FakeHost(OTHER, *(FakeChannel(*map(line, [READY, *lines])) for lines in verb.others))
    try:
        with fleet_of(hosts) as fleet:
            text = verb.act(fleet, folder)
    except LaunchError as error:
        text = str(error)
    except Exception as error:
        return f"{error!r} at {traceback.format_tb(error.__traceback__)[-1]}"[:600]
    named = any(f"{host}" in text for host in (HOST, OTHER, "odd: leads"))
    return "" if named else f"no host named: {text[:200]!r}"


@pytest.fixture(autouse=True)
def short_waits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "LONGEST", 50_000)
    for module in (follower, attached):
        monkeypatch.setattr(module, "BEAT_S", 0.001)
        monkeypatch.setattr(module, "LEASE_S", 0.005)
    weird = getattr(request.node, "callspec", None) and request.node.callspec.params.get("weird")
    monkeypatch.setattr(follower, "SILENT_S", 0.2 if weird in (None, "silence") else 5.0)  # the others are not silent
    monkeypatch.setattr(builder, "SILENT_S", 0.0)
    monkeypatch.setattr(board, "START_S", 0.2)
    monkeypatch.setattr(resume, "QUIET_S", 0.05)
    monkeypatch.setattr(export_files, "QUIET_S", 0.0)


@pytest.mark.parametrize("name", VERBS)
def test_a_conversation_that_goes_well_ends_well(name: str, tmp_path: Path) -> None:
    verb = VERBS[name]
    good: List[List[Said]] = [[*map(line, [READY, *lines])] for lines in verb.conversations]
    assert failure(verb, good, tmp_path) == ""


@pytest.mark.parametrize("weird", WEIRD)
@pytest.mark.parametrize("name", VERBS)
def test_a_verb_names_the_host_whatever_its_channel_does(name: str, weird: str, tmp_path: Path) -> None:
    failed = [failure(VERBS[name], said, tmp_path) for said in scripts(VERBS[name], lambda each: iter([WEIRD[weird]]))]
    assert list(filter(None, failed)) == []


ENDS = (ProblemKind.BROKEN, ProblemKind.PYTHON_ENDED)
KINDS: Dict[str, Sequence[ProblemKind]] = {
    "silence": (ProblemKind.SILENT, ProblemKind.SLOW),
    "garbage": (ProblemKind.NOISE,),
    "a huge line": (ProblemKind.NOISE,),
    "half a line": (ProblemKind.BROKEN,),
    "nothing": ENDS,
    "a list": (ProblemKind.NOISE,),
    "null": (ProblemKind.NOISE,),
    "a number": (ProblemKind.NOISE,),
    "a deep line": (ProblemKind.NOISE,),
    "an error": (ProblemKind.REFUSED,),
    "a break": (ProblemKind.BROKEN,),
}
LOG = ("a log may be silent, and end", None)
# Or silent: the hundredths of a second of short_waits pass before a busy machine has dialled.
DIALLED_AGAIN = ("the lead is dialled again, and no channel is left", ProblemKind.UNREACHABLE, ProblemKind.SILENT)
OTHERWISE = {
    ("logs", "silence"): LOG,
    ("logs", "nothing"): LOG,
    ("status --watch", "nothing"): DIALLED_AGAIN,
    ("up", "nothing"): DIALLED_AGAIN,
    ("board", "silence"): ("it may be silent while it is shown; the script then ends", ProblemKind.BROKEN),
    ("resume", "nothing"): ("one of two hosts may end first, so the time decides", ProblemKind.SILENT),
}


@pytest.mark.parametrize("weird", KINDS)
@pytest.mark.parametrize("name", VERBS)
def test_what_a_channel_does_is_a_problem_of_its_host_and_of_that_kind(
    name: str, weird: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: List[Tuple[str, ProblemKind]] = []
    made = HostProblem.__init__

    def noted(self: HostProblem, host: str, kind: ProblemKind, what: str, advice: str = "") -> None:
        found.append((host, kind))
        made(self, host, kind, what, advice)

    monkeypatch.setattr(HostProblem, "__init__", noted)
    for said in scripts(VERBS[name], lambda each: iter([WEIRD[weird]])):
        found.clear()
        assert failure(VERBS[name], said, tmp_path) == ""
        kinds: Set[Optional[ProblemKind]] = {None} if not found else {kind for _, kind in found}
        assert kinds.intersection((*KINDS[weird], *OTHERWISE.get((name, weird), ())[1:])), (said, found)
        assert {host for host, _ in found} <= {HOST, OTHER, f"{HOST} and {OTHER}"}


@pytest.mark.not_fast
@pytest.mark.parametrize("part", few(range(PARTS), [0]))
@pytest.mark.parametrize("name", VERBS)
def test_a_verb_names_the_host_whatever_a_value_of_its_answer_is(name: str, part: int, tmp_path: Path) -> None:
    def replaced(each: Any) -> Iterator[List[Said]]:
        return ([line(mutant)] for mutant in itertools.islice(mutants(each), part, None, PARTS))

    failed = [failure(VERBS[name], said, tmp_path) for said in scripts(VERBS[name], replaced)]
    assert sorted(set(filter(None, failed))) == []


class Endless(FakeChannel):
    """A program that writes ``chunk`` for ever, once the conversation has begun."""

    def __init__(self, chunk: bytes, *script: bytes):
        super().__init__(*script)
        self._chunk, self.written = chunk, 0

    def receive(self, timeout_s: float) -> bytes:
        if self._script:
            return super().receive(timeout_s)
        self.written += len(self._chunk)
        return self._chunk


@pytest.mark.parametrize("chunk", [b"x", b"[", b'"'])
@pytest.mark.parametrize("begun", [(), (line(READY),)], ids=["at the greeting", "at the answer"])
def test_a_line_of_100_mb_ends_in_bounded_time_and_memory(
    begun: Tuple[bytes, ...], chunk: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "LONGEST", LONGEST)
    endless = Endless(chunk * CHUNK, *begun)
    tracemalloc.start()
    try:
        began = time.process_time()
        with pytest.raises(HostProblem, match="without a line end") as caught:
            ask(FakeHost(HOST, endless), CODE, "/w", "status", {}, 60.0)
        took_s, (_, most) = time.process_time() - began, tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert caught.value.kind is ProblemKind.NOISE and endless.closed
    assert endless.written <= LONGEST + 2 * CHUNK and most < 3 * LONGEST and took_s < 10.0
