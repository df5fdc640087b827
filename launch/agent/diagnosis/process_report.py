"""The live processes of a run on this host, with their waits and the stacks of their threads."""

import os
import time
from collections import Counter
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence, Tuple
from typing import Counter as CounterOf

from launch.agent.linux.processes import (
    Process,
    command_line,
    environment,
    inspect,
    status,
    wait_channel,
)
from launch.agent.linux.procfs import names_in, text_of, threads, waits_in
from launch.agent.state import process_records
from launch.agent.state.run_folder import RunFolder
from launch.agent.tasks.stacks import request_stacks
from launch.agent.text import Redaction

MOST = 512  # processes that are told of
LEAST_STACK = 2000  # characters of a process
LONGEST_ARGV = 1000  # characters


def described(folder: RunFolder, redaction: Redaction) -> List[Dict[str, Any]]:
    """Return the living processes of agent, keeper and tasks.

    ``task`` is None for the first two.
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
    """Return a table with one line for each process."""
    head = f"{'pid':>8} {'task':14} {'try':>3} S {'threads':>7} {'resident MB':>11} {'files':>6} waits in, argv"
    lines = [
        f"{each['pid']:>8} {each['task'] or '-':14} {each['attempt'] or '-':>3} {each['state']} {each['threads']:>7} "
        f"{each['resident_bytes'] / 1e6:>11.0f} {each['open_files']:>6} {each['waits_in']}, {each['argv']}"
        for each in processes
    ]
    return "\n".join([head, *lines]) + "\n"


def _in_kernel(pid: int) -> str:
    """Return where a process's threads are in the kernel.

    The result has only what this user may know.
    """
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
    """Yield the stacks of every task's processes, from the process itself and from the kernel.

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
