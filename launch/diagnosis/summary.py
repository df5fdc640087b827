"""The findings of a diagnosis in words: the run, what looks wrong, the newest steps, a line for each host."""

from collections import Counter
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional

from cluster.protocol.quantity import quantity
from cluster.protocol.typed_json import to_values
from cluster.spec.model import Spec
from launch.agent.wire.diagnose_request import Live
from launch.diagnosis.collect import HostReport
from launch.diagnosis.symptoms import newest_run, run_status, signs
from launch.teardown.leftovers_text import by_host
from launch.timeline import drawing
from launch.timeline.clock_shifts import ClockShift
from launch.timeline.flights import HostSpans, TimeLine, has_common_steps, time_line
from launch.timeline.waits import stall
from launch.view.console import fold

MOST_LINES = 40  # of a status' causes


@dataclass(frozen=True)
class Missing:
    """A section of a host that is not in the archive.

    Attributes:
      section: Section that is missing.
      why: Reason why it is missing.
    """

    section: str
    why: str


@dataclass(frozen=True)
class DiagnosedHost:
    """A host of ``diagnose --json``.

    Attributes:
      host: Name of a host of the file.
      error: Problem that kept the host from a complete answer; else null.
      run: Full name of the host's newest run of this name; null without one.
      files: Names of the host's files in the archive.
      looks_wrong: Symptoms of the host, one line each.
    """

    host: str
    error: Optional[str]
    run: Optional[str]
    files: List[str]
    missing: List[Missing]
    looks_wrong: List[str]


@dataclass(frozen=True)
class DiagnoseReport:
    """The object of ``diagnose --json``.

    Attributes:
      run: Full name of the newest run that a host reports; null where no run of this name has been.
      archive: Path of the archive.
      bytes: Size of the archive in bytes.
      steps: Newest steps of all tasks in words: which waits for which, since when. Empty if unknown.
    """

    run: Optional[str]
    archive: str
    bytes: int
    steps: List[str]
    hosts: List[DiagnosedHost]


def text(name: str, found: List[HostReport], when: str, steps: Optional[TimeLine] = None) -> str:
    """Return the text of ``summary.txt``, with the newest ``steps`` of the tasks where they are known."""
    wrong = signs(found)
    counts = Counter(host for host, _ in wrong)
    parts = [
        [f"{newest_run(found) or name}, at {when}", ""],
        ["# The run", *_run(found), ""],
        ["# Symptoms", *(by_host(wrong, []) or ["no known symptom"]), ""],
        *([["# Steps", *drawing.lines(steps), ""]] if steps else []),
        ["# Hosts", *by_host(((each.host, _host(each, counts[each.host])) for each in found), []), ""],
    ]
    return "\n".join(line for part in parts for line in part)


def _run(found: List[HostReport]) -> Iterator[str]:
    reports = [each.facts.report for each in found if each.facts.report and each.run == newest_run(found)]
    status = run_status(found)
    if status is None:
        told = [each.host for each in found if each.run]
        yield "no host reports its state" if told else "no run of this name has been on these hosts"
        return
    yield f"state: {status.state}"
    if status.global_step is not None:
        of = f" of {status.steps}" if status.steps else ""
        yield f"step: {status.global_step}{of}, last checkpoint at {status.checkpoint_step}"
    if status.cause:
        yield f"cause: {status.cause}"
    yield from (reports[0].words or []) if reports else []
    ill = [task for task in status.tasks if task.cause][:MOST_LINES]
    yield from (f"{task.title} {task.state}: {task.cause}" for task in ill)


def _host(host: HostReport, count: int) -> str:
    if not host.files:
        return f"no answer: {host.problem}"
    live = host.facts.live or Live(None, [])
    tasks = {each.task for each in live.processes if each.task}
    agent = "no agent" if live.agent is None else "its agent lives"
    living = f"{len(tasks)} {'task lives' if len(tasks) == 1 else 'tasks live'}" if tasks else "no task lives"
    wrong = quantity(count, "symptom") if count else "no symptom"
    return f"{agent}, {living}; {wrong}"


def as_values(found: List[HostReport], archive: str, size: int, steps: Optional[TimeLine] = None) -> Dict[str, Any]:
    """Return the object of ``diagnose --json``."""
    by: Dict[str, List[str]] = {}
    for host, sign in signs(found):
        by.setdefault(host, []).append(sign)
    hosts = [_diagnosed(each, by.get(each.host, [])) for each in found]
    return to_values(DiagnoseReport(newest_run(found), archive, size, drawing.lines(steps) if steps else [], hosts))


def _diagnosed(host: HostReport, looks_wrong: List[str]) -> DiagnosedHost:
    missing = [Missing(section, why) for section, why in sorted(host.missing.items())]
    return DiagnosedHost(host.host, host.problem, host.run, sorted(host.files), missing, looks_wrong)


def spoken(found: List[HostReport], archive: str, size: int, steps: Optional[TimeLine] = None) -> List[str]:
    """Return the lines that the verb prints: the symptoms, and the task that others wait for."""
    now = stall(steps) if steps else None
    silent = [each.host for each in found if not each.files]
    told = f"{len(found) - len(silent)} of {len(found)} hosts answered"
    of_silent = f"; no answer from {fold(silent)}" if silent else ""
    return [
        *by_host(signs(found), []),
        *(drawing.stalled(now) if now else []),
        f"{archive}: {told}, {size / 1e6:.1f} MB{of_silent}; start with its summary.txt",
    ]


def time_line_of(found: List[HostReport], spec: Spec) -> Optional[TimeLine]:
    """Return the time line of the newest run; None where no host has sent the spans of a task."""
    run = newest_run(found)
    answers = {each.host: HostSpans(each.flights, _clock(each)) for each in found if each.run == run and each.flights}
    if not answers:
        return None
    return time_line(answers, run_status(found), spec.chief.host, has_common_steps(spec))


def _clock(report: HostReport) -> Optional[ClockShift]:
    clock = report.facts.clock
    return None if clock is None else ClockShift(clock.offset_s, clock.error_s)
