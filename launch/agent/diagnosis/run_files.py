"""The files of a run on this host, as they may be shown to others: bounded, and without secrets."""

import json
import os
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple

from cluster.protocol.shared_files import open_to_read, read_at_most
from cluster.protocol.typed_json import to_values
from launch.agent.state import newest_spans, plan_file
from launch.agent.state.run_folder import RunFolder
from launch.agent.text import HIDDEN, Redaction
from launch.agent.wire.diagnose_request import SPANS

VALUES = ("report.json", "agent.json", "processes.json")
OF_A_TASK = ("progress.json", "outcome.json", "pulse.json")
FIRST, NEWEST = 4, 28  # attempts of a task whose logs are shown
LEAST = 2000  # bytes of a log
SPAN, FEWEST_SPANS = 80, 10  # bytes of a span as JSON; spans of a task
LARGEST = 16 << 20  # bytes of a JSON file that is read

Piece = Tuple[str, Any]  # a file's name, and its text or what becomes JSON


def values(folder: RunFolder, redaction: Redaction) -> Iterator[Piece]:
    """Yield the files that the agent wrote, and those that the tasks wrote."""
    for name in VALUES:
        path = folder.own / name
        if path.exists():
            yield name, redaction.value(_read(path))
    for task in tasks_of(folder):
        for name in OF_A_TASK:
            path = folder.task(task) / name
            if path.exists():
                yield f"tasks/{_plain(task)}/{name}", redaction.value(_read(path))


def plan_of(folder: RunFolder, redaction: Redaction) -> Dict[str, Any]:
    """Return the plan of this host, without secrets and without the run's token."""
    plan = _read(folder.own / "plan.json")
    if not isinstance(plan, dict) or "tasks" not in plan:
        return {"unreadable": redaction.value(plan)}
    shown = {key: value for key, value in plan.items() if key not in ("token", "secrets", "tasks")}
    return {**redaction.value(shown), "token": HIDDEN, "tasks": [_shown(task, redaction) for task in plan["tasks"]]}


def _shown(task: Mapping[str, Any], redaction: Redaction) -> Dict[str, Any]:
    """Return a task without the cluster, which the plan contains once for all tasks."""
    env = {name: value for name, value in task.get("env", {}).items() if name != "TF_CONFIG"}
    rest = {key: value for key, value in task.items() if key != "env"}
    return {**redaction.value(rest), "env": redaction.environment(env)}


def logs(folder: RunFolder, redaction: Redaction, budget: int) -> Iterator[Piece]:
    """The ends of the agent's log and of every attempt's, ``budget`` bytes in all."""
    paths = [
        (f"tasks/{_plain(task)}/{path.name}", path) for task in tasks_of(folder) for path in _attempts(folder, task)
    ]
    named = [("agent.log", folder.own / "agent.log"), *paths]
    sizes = {name: size_of(path) for name, path in named}
    shares = share(sizes, budget)
    lines = []
    for name, path in named:
        text = tail(path, shares[name])
        lines.append(
            f"{name}: {path}, {sizes[name]} bytes, of which the last {min(sizes[name], shares[name])} are here"
        )
        yield name, redaction.text(text)
    yield "logs.txt", redaction.text("\n".join(lines) + "\n")


def traces(folder: RunFolder, redaction: Redaction, budget: int) -> Iterator[Piece]:
    """Yield the step timelines that workers wrote on this host, ``budget`` bytes in all.

    ``traces.txt`` lists the paths of all, also of those that are too large.
    """
    lines = []
    for path in sorted((folder.path / "trace").glob("*.json")):
        size = size_of(path)
        here = size <= budget
        lines.append(f"{path}, {size} bytes{'' if here else ', too large to be here'}")
        if here:
            budget -= size
            yield f"trace/{path.name}", redaction.value(_read(path))
    if lines:
        yield "traces.txt", redaction.text("\n".join(lines) + "\n")


def spans(folder: RunFolder, redaction: Redaction, budget: int) -> Iterator[Piece]:
    """Yield the newest spans that each task has recorded, about ``budget`` bytes in all."""
    tasks = tasks_of(folder)
    newest = max(FEWEST_SPANS, budget // SPAN // max(1, len(tasks)))
    for task in tasks:
        yield f"tasks/{_plain(task)}/{SPANS}", redaction.value(to_values(newest_spans.of_task(folder, task, newest)))


def share(sizes: Mapping[str, int], budget: int) -> Dict[str, int]:
    """Return the number of bytes to show of each file, at least ``LEAST``.

    The bytes that small files do not need go to the large files.
    """
    shares, left = {}, budget
    for count, name in zip(range(len(sizes), 0, -1), sorted(sizes, key=lambda name: sizes[name])):
        shares[name] = min(sizes[name], max(LEAST, left // count))
        left -= shares[name]
    return shares


def tail(path: Path, size: int) -> str:
    """Return the last bytes of a file, from the beginning of a line if possible.

    Where the file cannot be read, the result is the reason.
    """
    try:
        with open_to_read(path) as file:
            whole = os.fstat(file.fileno()).st_size
            file.seek(max(0, whole - size))
            data = file.read(size)
    except OSError as error:
        return f"cannot be read: {error.strerror}\n"
    rest = data.partition(b"\n")[2]
    return (rest if whole > size and rest else data).decode(errors="replace")


def tasks_of(folder: RunFolder) -> List[str]:
    """The tasks that this host was asked to run."""
    try:
        return list(plan_file.read(folder).names)
    except (OSError, ValueError):
        return []


def size_of(path: Path) -> int:
    """Return the size of a file in bytes; 0 where there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _attempts(folder: RunFolder, task: str) -> Sequence[Path]:
    found = folder.logs(task)
    return found if len(found) <= FIRST + NEWEST else [*found[:FIRST], *found[-NEWEST:]]


def _plain(task: str) -> str:
    return task.replace(":", ".")


def _read(path: Path) -> Any:
    """Return the content of a JSON file, or the error that its reading ends in."""
    try:
        return json.loads(read_at_most(path, LARGEST).decode())
    except (OSError, ValueError, RecursionError) as error:
        return {"cannot_be_read": f"{path}: {error}"}
