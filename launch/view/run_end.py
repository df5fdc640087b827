"""Describe the end of a run: the result, or the first cause with its log."""

import signal
from typing import Any, List, Optional, Sequence, Tuple, Union

from cluster.protocol.quantity import quantity
from launch.errors import CANNOT_START, FAILED, SUCCEEDED
from launch.status import incident_status
from launch.status.incident_status import IncidentStatus
from launch.status.run import RunStatus
from launch.status.task import TaskStatus
from launch.view.console import of_duration
from launch.view.run_text import best, elapsed, hook_problem, metrics, warnings


def ending(status: RunStatus, again: str, local: bool = False) -> List[str]:
    """Return the last lines of ``launch up``.

    Args:
      again: the arguments with which ``launch up`` resumes from the run.
      local: whether the files of all hosts are on this machine (``--local``).
    """
    head = f"{status.run} {status.state}"
    lines = [*what_happened(status), *hook_problem(status), *warnings(status)]
    if status.state != "succeeded":
        return [*lines, *saved(status, again), f"{head}: {status.cause}"]
    if status.checkpoint is not None:
        where = next((task.host for task in status.tasks if task.log and is_chief(status, task)), "")
        at = "" if local else f"{where}:"
        lines.append(f"checkpoint of step {status.checkpoint_step}: {at}{status.checkpoint}")
        lines += [f"{line}: {at}{status.best_checkpoint}" for line in best(status) if status.best_checkpoint]
        lines += [f"ended early: {status.ended_early}"] if status.ended_early else []
        head += f": step {status.global_step}"
    seconds = elapsed(status)
    took = "" if seconds is None else f", after {of_duration(seconds)}"
    return [*lines, f"{head}{took}", *metrics(status)]


def saved(status: RunStatus, again: str) -> List[str]:
    """Return a line with the newest checkpoint of a failed or stopped run, and the command that resumes from it."""
    if status.state not in ("failed", "stopped") or status.steps is None or status.global_step is None:
        return []
    if status.checkpoint_step is None:
        return ["no checkpoint was saved"]
    host = next((task.host for task in status.tasks if is_chief(status, task)), "")
    step, lost = status.checkpoint_step, max(0, status.global_step - status.checkpoint_step)
    loses = f", {quantity(lost, 'step')} before the end" if lost else ""
    return [f"saved: the checkpoint of step {step} on {host}{loses}; continue with `launch up --resume {again}`"]


def what_happened(status: RunStatus, most: int = 10) -> List[str]:
    """Return lines about at most ``most`` incidents; no line if the run's cause already explains the only incident."""
    incidents = status.incidents
    plain = len(incidents) == 1 and not incidents[0].followed and not incidents[0].did
    return [] if plain and status.state == "failed" else incident_status.lines(incidents, most)


def detached(
    run: str, asked: str, again: str, fragile: Sequence[Tuple[str, str]], resumes: bool, slurm_job: str = ""
) -> List[str]:
    """Return the lines that ``launch up -d`` prints when every task is up.

    Args:
      asked: the argument with which other verbs find the run.
      again: the arguments with which ``launch up`` starts a run with the same settings.
      fragile: hosts whose reboot ends the run, and the reason why a boot restarts no agent there, or "".
      resumes: whether the launcher knows the run's checkpoints.
      slurm_job: the Slurm job that has the hosts; "" for none.
    """
    lines = [f"{run} is up; see it with `launch status {asked}`, end it with `launch down {asked}`"]
    lines += [f"a reboot of {hosts} ends the run" + (f": {why}" if why else "") for hosts, why in fragile]
    if fragile:
        mend = f"then continue the run with `launch down {asked}` and `launch up --resume {again}`"
        if not resumes:
            mend = f"then start it again with `launch down {asked}` and `launch up {again}`"
        lines.append(mend)
    return lines + ([f"the run ends with Slurm's job {slurm_job} at the latest"] if slurm_job else [])


def exit_code(status: RunStatus, signals: Sequence[int]) -> int:
    """Return the exit code of ``up``: the run's exit code, or 128+n after signal n.

    Signal n counts where the run has not succeeded. A run that stopped because a host left ends as by SIGTERM. A run in
    which no task ever had a process could not start: its exit code is ``CANNOT_START``.
    """
    if status.state == "succeeded":
        return SUCCEEDED
    if signals:
        return 128 + signals[0]
    if status.departed is not None:
        return 128 + signal.SIGTERM
    return FAILED if any(task.pid or task.restarts for task in status.tasks) else CANNOT_START


def is_chief(status: RunStatus, task: TaskStatus) -> bool:
    """Return whether a task is the run's chief: the task of that role, or without such a task, worker:0."""
    roles = {each.role for each in status.tasks}
    return (task.role, task.index) == ("chief" if "chief" in roles else "worker", 0)


def culprit(status: RunStatus) -> Optional[TaskStatus]:
    """Return the task of the incident that made the run fail.

    The result is None where the incident is about a host, or where no incident made the run fail.
    """
    cause = _fatal(status)
    if cause is None:
        return None
    return next((task for task in status.tasks if _which(task) == _which(cause)), None)


def author_frames(status: RunStatus) -> Optional[IncidentStatus]:
    """Return the incident that made the run fail, if it has the frames of the author's own files; else None."""
    cause = _fatal(status)
    return None if cause is None or cause.kind == "frozen" or cause.stack is None else cause


def first_failure(status: RunStatus, task: TaskStatus) -> Optional[IncidentStatus]:
    """Return the fatal incident, if it is about an earlier attempt of ``task`` and has log lines; else None.

    The fatal incident is the incident that made the run fail.
    """
    cause = _fatal(status)
    if cause is None or not cause.lines or cause.title != task.title:
        return None
    return cause if cause.log != task.log else None


def _which(of: Union[TaskStatus, IncidentStatus]) -> Tuple[Any, ...]:
    """Return the values that an incident and its task have in common."""
    return of.role, of.index, of.host


def _fatal(status: RunStatus) -> Optional[IncidentStatus]:
    return next((each for each in status.incidents if each.number == status.cause_incident), None)
