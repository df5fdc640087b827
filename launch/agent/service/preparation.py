"""The preparation of this host for a run: records, ports, programs, GPUs, limits, folders.

Any obstacle raises ``NotReady``, before a task starts.
"""

import contextlib
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from platform import python_version
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from cluster.protocol.addresses import LOCAL_NAMES
from cluster.protocol.env_values import on_this_host
from cluster.protocol.outcome import WORK
from cluster.protocol.progress_lines import mistake_in
from launch.agent.checkpoints import resume
from launch.agent.containers import runtimes
from launch.agent.containers.command import RunContainers
from launch.agent.endings.exit_causes import ENVIRONMENT
from launch.agent.environments.environment import Busy, Environment
from launch.agent.errors import AgentError
from launch.agent.gpus import assignment, nvidia_smi
from launch.agent.gpus.assignment import Bookings, GpuTaken
from launch.agent.limits import control_groups
from launch.agent.limits.enforcement import Terms, agree, this_host, wishes
from launch.agent.limits.processors import Booked
from launch.agent.linux import processes
from launch.agent.network.resolver import exposed, unresolved
from launch.agent.service.located import code_of
from launch.agent.state import boot_unit, plan_file, port_holders, process_records, runs
from launch.agent.state.run_folder import RunFolder
from launch.agent.tasks import state_folder, work_folder
from launch.agent.tasks.spawning import TaskShare
from launch.agent.tasks.task_env import writes_stacks
from launch.agent.tasks.work_folder import Shipped
from launch.agent.wire.run_request import RunRequest, TaskRequest

LACKS_IT, PROBE_S = 61, 10.0
# Importing TensorFlow takes seconds; `launch check` does that.
PROBE = f"import importlib.util, sys; sys.exit({LACKS_IT} if importlib.util.find_spec('tensorflow') is None else 0)"


class NotReady(AgentError):
    """The error that this host cannot take part in the run; the text has the reason and the remedy."""


class HostShare(NamedTuple):
    """The resources of this host that a run's tasks get; the bookings last until the agent ends.

    Attributes:
      share: the GPUs, limits, container and code of the tasks.
      bookings: the booked GPUs.
      processors: the booked processors, which the tasks' limits name.
      notes: facts for the launcher.
    """

    share: TaskShare
    bookings: Bookings
    processors: Booked
    notes: Sequence[str] = ()

    def release(self, folder: RunFolder) -> None:
        """Remove the control groups of ended tasks, and release the bookings."""
        control_groups.remove_left(folder)
        self.bookings.release()
        self.processors.release()


def prepare(asked: RunRequest, request: RunRequest, folder: RunFolder, keeper: processes.Process) -> HostShare:
    """Prepare this host for its part of a run.

    Args:
      asked: the request as received.
      request: the same request with this host's paths.
      folder: the run's folder.
      keeper: the process of the agent's keeper.

    Raises:
      NotReady: an obstacle exists.
      EndedForGood: a user has ended the run, or the one before.
    """
    _record(asked, request, folder, keeper)
    _look_for_obstacles(request, folder)
    try:
        kept = _find_earlier(asked, folder)
        gpus, bookings = _book(request, folder)
        container = runtimes.of_run(request.container, folder.workdir, request.checkpoint_dir)
    except (ValueError, GpuTaken, nvidia_smi.NoDriverAnswer, runtimes.Lacking) as error:
        raise NotReady(str(error)) from error
    terms, processors = _limit(request, folder, container)
    _furnish(request, folder)
    share = TaskShare(gpus, terms, container, _shipped(request, folder), request)
    return HostShare(share, bookings, processors, [*terms.notes, *kept])


@contextlib.contextmanager
def environment(request: RunRequest, folder: RunFolder) -> Iterator[None]:
    """Protect the tasks' Python environment, if the request names one, from removal within the context.

    Raises:
      NotReady: the environment is not built, or is being built.
    """
    if request.environment is None:
        yield
        return
    environment = Environment(folder.workdir, request.environment)
    try:
        with environment.held(alone=False):
            if not environment.is_ready():
                raise NotReady(f"its Python environment is not built; build it with `{request.setup}`")
            environment.touch()
            yield
    except Busy:
        raise NotReady("its Python environment is being built; wait for `launch setup` to end") from None


def _record(asked: RunRequest, request: RunRequest, folder: RunFolder, keeper: processes.Process) -> None:
    """Write the request and the agent's processes to files, before any task starts."""
    try:
        if request.generation is not None:
            runs.note_generation(folder, request.generation, durable=request.returns)
        if not request.again or not folder.has(plan_file.PLAN):  # the age of this file is the run's
            plan_file.write(folder, request)
        if request.returns:
            boot_unit.write(folder, replace(asked, again=True, booted=True, secrets={}))
        process_records.write_agent(folder, processes.inspect(os.getpid()) or keeper, keeper)
    except OSError as error:
        raise NotReady(f"cannot write in {folder.own}: {error.strerror}") from error
    if os.getppid() != keeper.pid:  # an end of the run kills the keeper first, and could not find this agent on record
        raise NotReady("expected the keeper, the agent's parent process; it has ended, so the run is about to end here")
    if not request.again:
        runs.refuse_ended(folder, request.follows)


def _look_for_obstacles(request: RunRequest, folder: RunFolder) -> None:
    """Raise NotReady with all missing programs and taken ports."""
    sent = code_of(request, folder, "job") if "job" in request.code else folder.path
    beside = f"launch up --local {request.file}" if request.host in LOCAL_NAMES else None
    found = port_holders.refusals(request.tasks, beside)
    if request.container is None:  # else the programs are in the image
        found += [f"no program {task.argv[0]} on this host" for task in request.tasks if not _has_program(task, sent)]
        found += [] if request.again else lacking_tensorflow(request.tasks)
    found += [] if request.again else _missing_commands(request, sent)
    found += [] if request.again else unresolved(request)
    found += [*exposed(request), *_unread_progress(request.progress)]
    if found:
        raise NotReady("; ".join(dict.fromkeys(found)))


def _find_earlier(asked: RunRequest, folder: RunFolder) -> List[str]:
    """Prepare what tasks continue from: a job's checkpoint folder, a program's kept folder; return notes.

    Raises:
      ValueError: there is nothing to continue from, or a new run would continue an earlier one.
    """
    if any(task.chief and task.folder == "launcher" for task in asked.tasks) and not asked.again:
        resume.prepare(folder, asked.name, asked.checkpoint_dir, asked.resume, asked.resume_from)
    try:
        return state_folder.create(asked, folder)
    except OSError as error:
        raise ValueError(f"cannot create {error.filename}: {os.strerror(error.errno or 0)}") from error


def _book(request: RunRequest, folder: RunFolder) -> Tuple[Dict[str, List[int]], Bookings]:
    """Book and return the GPUs of each task.

    Raises:
      ValueError: a GPU is missing.
      GpuTaken, NoDriverAnswer: a GPU is taken, or the driver does not answer.
    """
    asked = {task.name: task.gpus for task in request.tasks}
    found = nvidia_smi.list_gpus() if assignment.needs_list(asked) else []
    given = assignment.give_allotted(asked, found, os.environ)
    bookings = Bookings(found, f"{request.run} (agent pid {os.getpid()})")
    bookings.book(given)
    return given, bookings


def _has_program(task: TaskRequest, sent: Path) -> bool:
    """Return whether the task's program exists."""
    try:
        path = on_this_host(task.env, os.environ).get("PATH")
    except OSError:  # a value is too long: the start of the task reports it
        return True
    return _is_there(task.argv[0], sent, path)


def lacking_tensorflow(tasks: Sequence[TaskRequest]) -> List[str]:
    """Return an error text for each Python of a job's tasks that lacks TensorFlow; skip a Python without answer."""
    pythons = {(task.argv[0], task.env.get("PYTHONPATH")): task for task in tasks if writes_stacks(task.argv)}
    lacking = [task.argv[0] for task in pythons.values() if _lacks_tensorflow(task)]
    return [f"{python}: expected a Python with TensorFlow, found none there; {ENVIRONMENT}" for python in lacking]


def _lacks_tensorflow(task: TaskRequest) -> bool:
    try:
        env = {**os.environ, **on_this_host(task.env, os.environ)}
        asked = subprocess.run(
            [task.argv[0], "-c", PROBE], env=env, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, timeout=PROBE_S,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == LACKS_IT


def _missing_commands(request: RunRequest, sent: Path) -> List[str]:
    """Return a text for each missing program that this host runs in addition to the tasks."""
    programs = [(key, os.path.expanduser(name)) for key, name in request.programs_beside_tasks()]
    missing = [(key, name) for key, name in programs if not _is_there(name, sent)]
    return [f"{key}: no program {name} on this host; install it, or write its path into {key}" for key, name in missing]


def _is_there(program: str, sent: Path, path: Optional[str] = None) -> bool:
    """Return whether a program exists in the sent code, or on a PATH, as its process would look for it."""
    if os.path.dirname(program):
        program = os.path.join(str(sent), program)
    return shutil.which(program, path=path) is not None


def _unread_progress(expression: Optional[str]) -> List[str]:
    """Return the reason why this host's Python reads ``progress`` otherwise than the launcher's; none where it does."""
    mistake = None if expression is None else mistake_in(expression)
    return (
        [] if mistake is None else [f"progress: expected {mistake.expected} {python_version()}, found {mistake.found}"]
    )


def _limit(request: RunRequest, folder: RunFolder, container: Optional[RunContainers]) -> Tuple[Terms, Booked]:
    """Return the terms of the tasks' limits, and their processors, which are booked until the agent ends.

    Raises:
      NotReady: this host cannot enforce some limit.
    """
    booked = Booked()
    terms = agree(wishes(request.tasks), booked.take, this_host(), container)
    if terms.problems:
        raise NotReady("; ".join(terms.problems))
    try:
        if terms.place is not None:
            control_groups.write_place(folder, terms.place)
    except OSError as error:
        raise NotReady(f"cannot write in {folder.own}: {error.strerror}") from error
    return terms, booked


def _furnish(request: RunRequest, folder: RunFolder) -> None:
    """Create the working folders of this host's tasks, before the run begins.

    Copying may take seconds.

    Raises:
      NotReady: the copy fails, as on a full disk.
    """
    try:
        work_folder.create(request, folder, code_of(request, folder, "job") if "job" in request.code else None)
    except OSError as error:
        where = work_folder.homes(request, folder)[0] / WORK
        raise NotReady(f"cannot copy the job's folder to {where}: {os.strerror(error.errno or 0)}") from error


def _shipped(request: RunRequest, folder: RunFolder) -> Optional[Shipped]:
    """Return the shipped launcher code for restarts of tasks; None without such code."""
    if "launcher" not in request.code:
        return None
    try:
        return Shipped(code_of(request, folder, "launcher"), folder.own, work_folder.homes(request, folder))
    except (OSError, ValueError) as error:
        raise NotReady(f"cannot read the code that was sent: {error}; start again") from error


def forget(request: RunRequest, folder: RunFolder) -> None:
    """Remove the files of a failed start; other hosts' files stay."""
    boot_unit.remove(folder)
    for path in (folder.own, *(folder.task(task.name) for task in request.tasks)):
        shutil.rmtree(str(path), ignore_errors=True)
    for path in (folder.own.parent, folder.path):
        with contextlib.suppress(OSError):
            path.rmdir()
