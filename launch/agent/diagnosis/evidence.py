"""The files and the living processes of a run on this host, limited in size and without secrets, to be shown to others.

For each process the evidence shows what it waits for, and the stacks of its threads.
"""

import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple
from typing import Counter as CounterOf

from cluster.protocol.shared_files import open_to_read, read_at_most
from cluster.protocol.typed_json import to_values
from launch.agent.linux.processes import (
    Process,
    command_line,
    environment,
    inspect,
    status,
    wait_channel,
)
from launch.agent.linux.procfs import names_in, text_of, threads, waits_in
from launch.agent.state import newest_spans, plan_file, process_records
from launch.agent.state.run_folder import RunFolder
from launch.agent.tasks.stacks import request_stacks
from launch.agent.text import HIDDEN, Redaction
from launch.agent.wire.diagnose_request import SPANS

VALUES = ("report.json", "agent.json", "processes.json")
OF_A_TASK = ("progress.json", "outcome.json", "pulse.json")
FIRST, NEWEST = 4, 28  # the first and the newest attempts of a task whose logs are shown
LEAST = 2000  # bytes of a log
SPAN, FEWEST_SPANS = 80, 10  # bytes of a span as JSON; spans of a task
LARGEST = 16 << 20  # bytes of a JSON file to read

Piece = Tuple[str, Any]  # a file's name, and its text or JSON value


def values(folder: RunFolder, redaction: Redaction) -> Iterator[Piece]:
    """Yield the JSON files that the agent and the tasks of a run wrote, without secrets."""
    named = [(name, folder.own / name) for name in VALUES]
    named += [
        (f"tasks/{_plain(task)}/{name}", folder.task(task) / name) for task in tasks_of(folder) for name in OF_A_TASK
    ]
    for name, path in named:
        if path.exists():
            yield name, redaction.value(_read(path))


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
    """Yield the ends of the agent's log and of every attempt's log, ``budget`` bytes in all."""
    paths = [
        (f"tasks/{_plain(task)}/{path.name}", path) for task in tasks_of(folder) for path in _attempts(folder, task)
    ]
    named = [("agent.log", folder.own / "agent.log"), *paths]
    sizes = {name: size_of(path) for name, path in named}
    shares = share(sizes, budget)
    lines = []
    for name, path in named:
        text = tail(path, shares[name])
        lines.append(f"{name}: {path}, {sizes[name]} bytes; this archive has the last {min(sizes[name], shares[name])}")
        yield name, redaction.text(text)
    yield "logs.txt", redaction.text("\n".join(lines) + "\n")


def traces(folder: RunFolder, redaction: Redaction, budget: int) -> Iterator[Piece]:
    """Yield the step timelines that workers wrote on this host, ``budget`` bytes in all.

    ``traces.txt`` lists the paths of all timelines, including those that are too large to be yielded.
    """
    lines = []
    for path in sorted((folder.path / "trace").glob("*.json")):
        size = size_of(path)
        here = size <= budget
        lines.append(f"{path}, {size} bytes{'' if here else ', too large for this archive'}")
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
    """Return the number of bytes to show of each file: its share of ``budget``, but at least ``LEAST``.

    All bytes of a smaller file are shown. Small files leave their unused bytes to the large files.
    """
    shares, left = {}, budget
    for count, name in zip(range(len(sizes), 0, -1), sorted(sizes, key=lambda name: sizes[name])):
        shares[name] = min(sizes[name], max(LEAST, left // count))
        left -= shares[name]
    return shares


def tail(path: Path, size: int) -> str:
    """Return the last ``size`` bytes of a file, from the beginning of a line if possible.

    For an unreadable file, the result is the reason.
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
    """Return the tasks that this host was asked to run."""
    try:
        return list(plan_file.read(folder).names)
    except (OSError, ValueError):
        return []


def size_of(path: Path) -> int:
    """Return the size of a file in bytes; 0 for a missing file."""
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
    """Return the content of a JSON file, or the error of reading it."""
    try:
        return json.loads(read_at_most(path, LARGEST).decode())
    except (OSError, ValueError, RecursionError) as error:
        return {"cannot_be_read": f"{path}: {error}"}


MOST = 512  # processes to describe
LEAST_STACK = 2000  # characters of a process
LONGEST_ARGV = 1000  # characters


def described(folder: RunFolder, redaction: Redaction) -> List[Dict[str, Any]]:
    """Return a description of each living process of the agent, its keeper and the tasks.

    In the descriptions of the agent and the keeper, ``task`` is None.
    """
    agents, tasks = process_records.agent_of(folder), process_records.tasks_of(folder)
    found = [_described(process, process not in agents, redaction) for process in [*agents, *tasks][:MOST]]
    return [each for each in found if each]


def _described(process: Process, of_a_task: bool, redaction: Redaction) -> Dict[str, Any]:
    told = status(process.pid)
    now = inspect(process.pid)
    if now is None:
        return {}
    env = environment(process.pid) if of_a_task else {}
    folder, attempt = env.get("LAUNCH_TASK_DIR"), env.get("LAUNCH_ATTEMPT")
    return {
        "pid": process.pid, "parent": now.parent, "group": now.group, "start": now.start, "state": now.state,
        "task": os.path.basename(folder).replace(".", ":", 1) if folder else None, "attempt": attempt,
        "threads": _number(told.get("Threads")), "resident_bytes": 1024 * _number(told.get("VmRSS")),
        "peak_bytes": 1024 * _number(told.get("VmHWM")), "swapped_bytes": 1024 * _number(told.get("VmSwap")),
        "waits_in": wait_channel(process.pid), "open_files": len(names_in(Path(f"/proc/{process.pid}/fd"))),
        "argv": redaction.text(command_line(process.pid))[:LONGEST_ARGV],
    }  # fmt: skip


def table(processes: Sequence[Dict[str, Any]]) -> str:
    """Return a table of processes that ``described`` has returned, one line for each process."""
    head = f"{'pid':>8} {'task':14} {'try':>3} S {'threads':>7} {'resident MB':>11} {'files':>6} waits in, argv"
    lines = [
        f"{each['pid']:>8} {each['task'] or '-':14} {each['attempt'] or '-':>3} {each['state']} {each['threads']:>7} "
        f"{each['resident_bytes'] / 1e6:>11.0f} {each['open_files']:>6} {each['waits_in']}, {each['argv']}"
        for each in processes
    ]
    return "\n".join([head, *lines]) + "\n"


def _in_kernel(pid: int) -> str:
    """Return the places of a process's threads in the kernel, as far as this user may read them."""
    states: CounterOf[Tuple[str, str]] = Counter()
    lines = []
    for place in threads(pid):
        name, state = text_of(place / "comm").strip(), _state(place)
        where = waits_in(place) or "-"
        states[state, where] += 1
        stack = [f"    {row}" for row in text_of(place / "stack").splitlines()]
        lines.append("\n".join([f"{place.name} ({name}) {state} {where}", *stack]))
    counted = [f"{number} threads: {state}, {where}" for (state, where), number in states.most_common()]
    return "\n".join([*counted, "", *lines]) + "\n"


def stacks(
    folder: RunFolder, processes: Sequence[Dict[str, Any]], redaction: Redaction, budget: int
) -> Iterator[Tuple[str, str]]:
    """Yield the stacks of every task's processes, from each process itself and from the kernel.

    A process that does not write its stacks has only the kernel's part. The processes share ``budget`` evenly, in
    characters.
    """
    asked = [each for each in processes if each["task"] is not None]
    most = max(LEAST_STACK, budget // max(1, len(asked)))
    for each in asked:
        if _is(each):
            told = redaction.text(request_stacks(each["pid"], folder.task(each["task"])))
            head = f"{each['task']} {each['argv']}\n{time.strftime('%H:%M:%S')}"
            yield f"stacks/{each['pid']}.txt", "\n".join(filter(None, [head, told, _in_kernel(each["pid"])]))[:most]


def _is(each: Dict[str, Any]) -> bool:
    now = inspect(each["pid"])
    return now is not None and now.start == each["start"]


def _state(place: Path) -> str:
    text = text_of(place / "stat")
    return text[text.rindex(")") + 2 :].split()[0] if ")" in text else "?"


def _number(text: Any) -> int:
    return int(str(text).split()[0]) if text else 0
