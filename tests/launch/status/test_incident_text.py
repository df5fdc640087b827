"""An incident is told in one sentence: who, what, when, what followed, when training went on, what was lost."""

from dataclasses import replace
from typing import Any, Dict

import pytest

from launch.status.incident_status import LONGEST, Consequence, IncidentStatus, lines, sentence

KILLED = IncidentStatus(
    number=1, kind="signal", at_s=9.0, role="worker", index=1, host="gpu02", attempt=0, step=412,
    cause="killed by SIGKILL; its last line: step 412", error="", exit_code=-9, signal="SIGKILL", log="/l",
    again_s=4.123, lost_steps=0, lost_seconds=3.9,
)  # fmt: skip


def incident(**fields: Any) -> IncidentStatus:
    """A worker that was killed, and is over, but for these fields."""
    return replace(KILLED, **fields)


def followed(*tasks: str) -> Dict[str, Any]:
    """Fields of an incident from which these tasks' failures followed."""
    each = [Consequence(role=task.split(":")[0], index=int(task.split(":")[1]), host="a") for task in tasks]
    return {"followed": each, "followed_count": len(each)}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "worker:1@gpu02 killed by SIGKILL at step 412, training again after 4.1 s, nothing lost"),
        ({"role": "ps", "index": 0, "lost_steps": 20, "lost_seconds": 7.7},
         "ps:0@gpu02 killed by SIGKILL at step 412, training again after 4.1 s, 20 steps lost, 7.7 s until they were"
         " taken again"),
        ({"role": "evaluator", "index": 0},
         "evaluator:0@gpu02 killed by SIGKILL at step 412, evaluating again after 4.1 s, nothing lost"),
        ({"kind": "exit", "exit_code": 3, "step": None, "again_s": None, "open": True, "lost_seconds": None},
         "worker:1@gpu02 left with exit code 3, not back since"),
        ({"kind": "exit", "exit_code": 2, "error": "t.py: error: x", "step": None},
         "worker:1@gpu02 left with exit code 2: t.py: error: x, training again after 4.1 s, nothing lost"),
        ({"kind": "exception", "exit_code": 1, "cause": "ValueError: x", "error": "ValueError: x", "signal": None},
         "worker:1@gpu02: ValueError: x at step 412, training again after 4.1 s, nothing lost"),
        ({"kind": "out-of-memory", "cause": "killed by the kernel: out of memory (SIGKILL); its last line: step 9"},
         "worker:1@gpu02 killed by SIGKILL: out of memory at step 412, training again after 4.1 s, nothing lost"),
        ({"kind": "frozen", "cause": "frozen: in read()"},
         "worker:1@gpu02: frozen: in read() at step 412, training again after 4.1 s, nothing lost"),
        ({"kind": "host", "role": None, "index": None, "cause": "no message for 10 s", "exit_code": None},
         "gpu02: no message for 10 s at step 412, training again after 4.1 s, nothing lost"),
        ({"kind": "non-finite", "role": None, "host": None, "cause": None, "exit_code": None},
         "non-finite at step 412, training again after 4.1 s, nothing lost"),
        ({"lost_steps": None, "lost_seconds": None},
         "worker:1@gpu02 killed by SIGKILL at step 412, back after 4.1 s"),
        ({"again_s": None, "restarted_s": 1.2, "lost_steps": None, "lost_seconds": None},
         "worker:1@gpu02 killed by SIGKILL at step 412, restarted after 1.2 s, unknown whether it continued from a"
         " checkpoint"),
        ({"again_s": None, "restarted_s": 1.2, "lost_steps": None, "lost_seconds": None, "open": True},
         "worker:1@gpu02 killed by SIGKILL at step 412, restarted after 1.2 s, not back since"),
        ({"again_s": None, "restarted_s": 1.2, "lost_steps": 20, "lost_seconds": None},
         "worker:1@gpu02 killed by SIGKILL at step 412, restarted after 1.2 s, not back since, 20 steps lost"),
        ({"again_s": None, "lost_steps": 20, "lost_seconds": None, "open": True},
         "worker:1@gpu02 killed by SIGKILL at step 412, not back since, 20 steps lost"),
        ({"resumed_from": 0, "lost_steps": 412},
         "worker:1@gpu02 killed by SIGKILL at step 412, began again from step 0 after 4.1 s, 412 steps lost, 3.9 s"
         " until they were taken again"),
        (followed("worker:0"), "worker:1@gpu02 killed by SIGKILL at step 412, 1 more failure followed from it"
         " (worker:0@a), training again after 4.1 s, nothing lost"),
    ],
)  # fmt: skip
def test_an_incident_is_a_sentence(fields: Dict[str, Any], said: str) -> None:
    assert sentence(incident(**fields)) == said


@pytest.mark.parametrize("kind", ["signal", "exit", "out-of-memory"])
def test_an_incident_of_an_old_report_is_told_with_its_whole_cause(kind: str) -> None:
    cause = "exit code 1; its error: ValueError: x"
    assert sentence(incident(kind=kind, cause=cause, error=None)).startswith(f"worker:1@gpu02: {cause} at step 412, ")


@pytest.mark.parametrize("words", ["plan B", "worker:1@gpu02 was slow", "x; its error: y; its last line: z"])
def test_other_words_of_a_cause_change_nothing_but_themselves(words: str) -> None:
    for kind in ("exception", "host", "frozen", "signal", "exit"):
        before = incident(kind=kind, cause="the words", error="", signal=None if kind == "exception" else "SIGKILL")
        assert sentence(replace(before, cause=words)) == sentence(before).replace("the words", words)


def test_of_many_that_followed_three_are_named() -> None:
    said = sentence(incident(**followed("worker:0", "worker:2", "worker:2", "worker:3", "worker:4")))
    assert "5 more failures followed from it (worker:0@a, worker:2@a, worker:3@a, \u2026)" in said


def test_a_long_cause_is_cut() -> None:
    assert len(sentence(incident(kind="exception", cause="x" * 1000))) < LONGEST + 100


def test_without_incidents_nothing_is_said() -> None:
    assert lines([]) == []


def test_one_incident_is_one_line_and_several_are_counted_and_numbered() -> None:
    assert lines([incident()]) == [f"1 incident: {sentence(incident())}"]
    both = [incident(), incident(number=2, index=3)]
    assert lines(both) == ["2 incidents:", f"  1. {sentence(both[0])}", f"  2. {sentence(both[1])}"]


def test_of_many_the_first_those_that_are_open_and_the_newest_are_shown() -> None:
    many = [incident(number=number, open=number == 97) for number in (1, 96, 97, 98, 99, 100)]
    assert [line.split(".")[0] for line in lines(many, most=4)] == [
        "100 incidents, of which 4 are shown:", "  1", "  97", "  99", "  100",
    ]  # fmt: skip
