"""Pictures of runs of 3, 32 and 200 tasks, healthy and failing, in terminals of three sizes; of 40, one restarted.

``python -m tests.launch.view.captures`` writes them into the folder ``captures``; a test compares.
"""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

from rich.console import Console

from launch.status.incident_status import Consequence, Deed, IncidentStatus
from launch.status.run import RunStatus
from launch.status.task import TaskStatus
from launch.view.live_view import Picture
from tests.support.launch.statuses import history, status, task

FOLDER = Path(__file__).resolve().parent / "captures"
SIZES = ((80, 24), (100, 30), (200, 50))
TASKS = (3, 32, 200)
ERROR = "ValueError: expected a batch of 64 examples, found 63"
LOSSES = [2.3 / (1 + step / 40) + 0.1 * (step % 7 == 0) for step in range(200)]


def tasks_of(number: int) -> List[TaskStatus]:
    """One ps to seven workers with two GPUs each, on hosts of four tasks."""
    servers = max(1, number // 8)
    names = [f"ps:{index}" for index in range(servers)] + [f"worker:{index}" for index in range(number - servers)]
    return [_task(name, f"gpu{place // 4 + 1:02}") for place, name in enumerate(names)]


def _task(name: str, host: str) -> TaskStatus:
    role, index = name.split(":")
    known: Dict[str, Any] = {"pid": 31000 + int(index), "bytes_in_per_second": 27.1e6, "bytes_out_per_second": 26.9e6}
    if role == "ps":
        return task(f"{name}@{host}", **known)
    gpus: Dict[str, Any] = {
        "gpus": [int(index) % 4 * 2, int(index) % 4 * 2 + 1],
        "gpu_percent": 93.0,
        "gpu_memory_bytes": 14.2e9,
    }
    return task(f"{name}@{host}", step=1200, step_time_ms=32.1, wait_ms=4.2, **gpus, **known)


def healthy(number: int) -> RunStatus:
    """A run that trains."""
    return status(
        *tasks_of(number), global_step=1200, steps=20000, steps_per_second=31.2, examples_per_second=3994.0, loss=0.21,
        checkpoint_step=1000, started="2026-11-23T12:00:00+00:00", updated="2026-11-23T12:01:05+00:00",
    )  # fmt: skip


def failing(number: int) -> RunStatus:
    """The same run after two deaths, of which one has not come back, with a slow worker and a silent host."""
    before = healthy(number)
    tasks = list(before.tasks)
    tasks[1] = replace(
        tasks[1], state="restarting", restarts=2, step=None, step_time_ms=None, wait_ms=None, pid=None,
        cause=f"exit code 1; its error: {ERROR}",
    )  # fmt: skip
    tasks[-1] = replace(tasks[-1], straggler=True, wait_ms=0.4)
    return replace(
        before, tasks=tasks, incidents=list(_incidents(tasks[1])), silent=["gpu01"], lost_steps=3, lost_seconds=4.1,
        waiting_share=0.31,
    )  # fmt: skip


def healed(number: int) -> RunStatus:
    """The same run after the death of a task in the middle, which trains again."""
    before = healthy(number)
    tasks = list(before.tasks)
    back = tasks[number // 2] = replace(tasks[number // 2], restarts=1)
    incident = IncidentStatus(
        number=1, kind="signal", at_s=20.5, role=back.role, index=back.index, host=back.host, attempt=0, step=412,
        cause="killed by SIGKILL", error="", exit_code=-9, signal="SIGKILL", restarted_s=0.5, again_s=4.1,
        lost_steps=0, lost_seconds=4.1,
    )  # fmt: skip
    return replace(before, tasks=tasks, incidents=[incident], lost_seconds=4.1)


def failed(number: int) -> RunStatus:
    """The end of a run whose first worker has a mistake."""
    before = status(*(replace(task, state="stopped") for task in tasks_of(number)), state="failed")
    tasks, cause = list(before.tasks), f"/home/anna/houses/job.py:15: {ERROR}, in `return model(x)`"
    dead = tasks[1] = replace(tasks[1], state="failed", cause=cause)
    incident = IncidentStatus(number=1, kind="exception", role=dead.role, index=dead.index, host=dead.host, cause=cause)
    whole = f"{dead.title}: {cause}"
    return replace(before, tasks=tasks, incidents=[incident], cause=whole, cause_incident=1)


def _incidents(dead: TaskStatus) -> Iterator[IncidentStatus]:
    yield IncidentStatus(
        number=1, kind="signal", at_s=20.5, role="ps", index=0, host="gpu01", attempt=0, step=412,
        cause="killed by SIGKILL", exit_code=-9, signal="SIGKILL",
        followed=[Consequence(20.6, "lost-connection", "worker", 0, "gpu01")], followed_count=1,
        did=[Deed(21.0, "ps:0 restarted after 0.5 s, attempt 2 of 4")], restarted_s=0.5, again_s=4.1,
        resumed_from=409, lost_steps=3, lost_seconds=4.1,
    )  # fmt: skip
    yield IncidentStatus(
        number=2, kind="exit", open=True, at_s=63.0, role=dead.role, index=dead.index, host=dead.host, attempt=1,
        step=1199, cause=dead.cause, error=ERROR, exit_code=1,
        did=[Deed(63.1, f"{dead.name} restarted after 2.0 s, attempt 3 of 4")],
    )  # fmt: skip


def drawn(run: RunStatus, width: int, height: int) -> str:
    """The picture of a run as a terminal of this size shows it."""
    console = Console(file=io.StringIO(), width=width, height=height)
    console.print(Picture(replace(run, history=history(enumerate(LOSSES))), height))
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return "".join(line.rstrip() + "\n" for line in text.splitlines())


def captures() -> Dict[str, Tuple[RunStatus, int, int]]:
    """Each capture by the name of its file: the run, and the size of the terminal."""
    few = {"healed_40_tasks_80x24.txt": (healed(40), 80, 24), "failed_3_tasks_80x24.txt": (failed(3), 80, 24)}
    return {
        **few,
        **{
            f"{kind.__name__}_{number}_tasks_{width}x{height}.txt": (kind(number), width, height)
            for kind in (healthy, failing)
            for number in TASKS
            for width, height in SIZES
        },
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, capture in captures().items():
        (FOLDER / name).write_text(drawn(*capture))
