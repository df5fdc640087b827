"""The findings of a diagnosis in words: the run, what looks wrong, a line for each host."""

from collections import Counter
from typing import Any, Dict, Iterator, List, Mapping

from launch.diagnosis.collect import Evidence
from launch.diagnosis.symptoms import newest_run, run_status, signs
from launch.teardown.leftovers import by_host
from launch.view.console import fold

MOST_LINES = 40  # of a status' causes


def text(name: str, found: List[Evidence], when: str) -> str:
    """Return the text of ``summary.txt``."""
    told = signs(found)
    counts = Counter(host for host, _ in told)
    parts = [
        [f"{newest_run(found) or name}, looked at {when}", ""],
        ["# The run", *_run(found), ""],
        ["# What looks wrong", *(by_host(told, []) or ["nothing that these rules know"]), ""],
        ["# Hosts", *by_host(((each.host, _host(each, counts[each.host])) for each in found), []), ""],
    ]
    return "\n".join(line for part in parts for line in part)


def _run(found: List[Evidence]) -> Iterator[str]:
    reports = [each.files["report.json"] for each in found if _of_newest(each, found, "report.json")]
    status = run_status(found)
    if status is None:
        told = [each.host for each in found if each.run]
        yield "no host tells of its state" if told else "no run of this name has been on these hosts"
        return
    yield f"state: {status.state}"
    if status.global_step is not None:
        yield f"step: {status.global_step} of {status.steps}, last checkpoint at {status.checkpoint_step}"
    if status.cause:
        yield f"cause: {status.cause}"
    yield from (reports[0].get("words") or []) if reports else []
    ill = [task for task in status.tasks if task.cause][:MOST_LINES]
    yield from (f"{task.title} {task.state}: {task.cause}" for task in ill)


def _of_newest(each: Evidence, found: List[Evidence], file: str) -> bool:
    return file in each.files and each.run == newest_run(found)


def _host(host: Evidence, count: int) -> str:
    if not host.files:
        return f"told nothing: {host.problem}"
    live = host.files.get("live.json", {"agent": None, "processes": []})
    tasks = sorted({each["task"] for each in live["processes"] if each["task"]})
    agent = "no agent" if live["agent"] is None else "its agent lives"
    living = f"{len(tasks)} {'task lives' if len(tasks) == 1 else 'tasks live'}" if tasks else "no task lives"
    wrong = f"{count} {'thing looks' if count == 1 else 'things look'} wrong" if count else "nothing looks wrong"
    return f"{agent}, {living}; {wrong}"


def as_values(found: List[Evidence], archive: str, size: int) -> Dict[str, Any]:
    """Return the object of ``diagnose --json``."""
    by: Dict[str, List[str]] = {}
    for host, sign in signs(found):
        by.setdefault(host, []).append(sign)
    return {
        "run": newest_run(found),
        "archive": archive,
        "bytes": size,
        "hosts": [_values(each, by.get(each.host, [])) for each in found],
    }


def _values(host: Evidence, looks_wrong: List[str]) -> Mapping[str, Any]:
    return {
        "host": host.host, "error": host.problem, "run": host.run, "files": sorted(host.files),
        "missing": [{"section": section, "why": why} for section, why in sorted(host.missing.items())],
        "looks_wrong": looks_wrong,
    }  # fmt: skip


def spoken(found: List[Evidence], archive: str, size: int) -> List[str]:
    """Return the lines that the verb prints."""
    silent = [each.host for each in found if not each.files]
    told = f"{len(found) - len(silent)} of {len(found)} hosts told"
    of_silent = f"; nothing came from {fold(silent)}" if silent else ""
    return [
        *by_host(signs(found), []),
        f"{archive}: {told}, {size / 1e6:.1f} MB{of_silent}; begin with summary.txt in it",
    ]
