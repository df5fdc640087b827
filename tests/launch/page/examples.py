"""Statuses of which pages are made."""

from typing import List

from launch.status.incident_status import Consequence, Deed, IncidentStatus
from launch.status.run import RunStatus
from launch.status.task import TaskStatus
from tests.support.launch.statuses import status, task

HOSTILE = "</script><img src=x onerror=\"document.title='owned'\"><!-- & \u2028 '\""
TIMES = {"started": "2026-11-20T15:59:02+00:00", "updated": "2026-11-20T16:00:25+00:00"}


def workers(count: int) -> List[TaskStatus]:
    """A ps and so many workers, each a little slower than the one before."""
    of_workers = [
        task(f"worker:{n}@gpu{n // 4:03}", step=840, step_time_ms=32.0 + n % 7, wait_ms=1.0 + n % 5)
        for n in range(count)
    ]
    return [task("ps:0@cpu01"), *of_workers]


def beginning() -> RunStatus:
    """A run of which nothing trains yet."""
    return status(task(state="starting", doing="builds its graph"), state="starting", steps=2000, **TIMES)


def training(count: int = 3) -> RunStatus:
    return status(
        *workers(count), global_step=840, steps=2000, loss=0.21, steps_per_second=31.2, examples_per_second=3993.6,
        checkpoint_step=800, replicas={"gpu001": 800, "gpu002": None}, **TIMES,
    )  # fmt: skip


def hostile() -> RunStatus:
    """A run in which every text that a host may choose is markup."""
    incident = IncidentStatus(
        number=1, kind="exit", open=True, at_s=31.5, role="worker", index=0, host=HOSTILE, cause=HOSTILE,
        lines=[HOSTILE], followed=[Consequence(32.0, "exit", "worker", 1, HOSTILE, cause=HOSTILE)], followed_count=1,
        did=[Deed(33.0, HOSTILE)], log=HOSTILE,
    )  # fmt: skip
    bad = TaskStatus("worker", 0, HOSTILE, state=HOSTILE, doing=HOSTILE, cause=HOSTILE)
    return RunStatus(
        HOSTILE, HOSTILE, "failed", cause=HOSTILE, tasks=[bad], incidents=[incident], metrics={HOSTILE: 0.5},
        replicas={HOSTILE: 3}, checkpoint=HOSTILE, checkpoint_step=3, silent=[HOSTILE],
    )  # fmt: skip
