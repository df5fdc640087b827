"""The agent process: from the launcher's request to the last file removed.

``serve`` prepares the host (lock, ports, GPUs, checkpoint, folders), and reports that it is
ready. Then the process is the lead or a member until the run is over.
"""

import asyncio
import contextlib
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from cluster.protocol.outcome import WORK
from launch.agent.checkpoints import owner, resume
from launch.agent.containers import runtimes
from launch.agent.containers.command import Container
from launch.agent.environments.environment import Busy, Environment
from launch.agent.gpus import assignment, nvidia_smi
from launch.agent.gpus.booking import Bookings, GpuTaken
from launch.agent.limits.processors import Booked
from launch.agent.limits.terms import Terms, agree, this_host, wishes
from launch.agent.linux import ports, processes
from launch.agent.linux.file_lock import NoLocks
from launch.agent.linux.open_files import ALL, allow_open_files
from launch.agent.network import firewall
from launch.agent.network.public_addresses import exposed
from launch.agent.protocol.local_server import Clients
from launch.agent.retention import background
from launch.agent.service import notice, predecessors
from launch.agent.service.agent import Agent
from launch.agent.service.keeper import AWAY, FAILED, OVER, TAKEN
from launch.agent.service.lead import Lead
from launch.agent.service.liveness_pipe import Pulse
from launch.agent.service.located import code_of, folder_of, located
from launch.agent.service.member import Member
from launch.agent.state import boot_unit, groups, plan_file, process_records, runs
from launch.agent.state.locks import NameTaken, hold, no_removal
from launch.agent.state.log import log_system_errors, say
from launch.agent.state.run_folder import RunFolder
from launch.agent.tasks import work_folder
from launch.agent.tasks.container_limits import in_containers
from launch.agent.tasks.host_tasks import HostTasks
from launch.agent.tasks.shipped import Shipped
from launch.agent.wire.run_request import RunRequest, TaskRequest
from launch.status.values import to_values

SWEEP_S = 10.0


class NotReady(Exception):
    """This host cannot take part in the run; the text has reason and remedy."""


def serve(asked: RunRequest, send: Callable[[Dict[str, Any]], None], keeper: processes.Process, pulse: Pulse) -> int:
    """Run this host's part of the request, and return an exit code for the keeper.

    ``send`` receives one answer, ready or an error.
    """
    allow_open_files(ALL)
    folder = folder_of(asked)
    request = located(asked, folder)
    try:
        with hold(folder, request.name, request.file), _environment(request, folder):
            left = predecessors.end(folder, request.name, request.file)
            with no_removal(folder.workdir):  # of the run that this one resumes from, and of the code
                _record(asked, request, folder, keeper)
                given, bookings = _prepare(request, folder)
                container = _contain(request, folder)
                terms, booked = _limit(request, folder, container)
                _furnish(request, folder)

            def ready(answer: Dict[str, Any]) -> None:
                send({**answer, "ended": left, "notes": list(terms.notes)})

            peers = None if request.guard is None else request.peers or ()
            with firewall.standing(request.run, firewall.ports(request), peers) as standing:
                code = asyncio.run(_live(request, folder, given, terms, container, bookings, standing, ready, pulse))
            booked.release()
            for task in request.tasks if code == OVER else ():
                work_folder.tidy(folder.task(task.name))
        return code
    except (NotReady, NameTaken, NoLocks, firewall.Unguarded) as error:
        if not request.again:  # else the run's files are those of the agent before
            _forget(request, folder)
        send({"error": str(error)})
        return TAKEN if isinstance(error, NameTaken) else FAILED


@contextlib.contextmanager
def _environment(request: RunRequest, folder: RunFolder) -> Iterator[None]:
    """Keep the tasks' Python environment from being removed, where the request names one."""
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
    """Write the request and the agent's processes to files, before there is anything to end."""
    try:
        if request.generation is not None:
            runs.note_generation(folder, request.generation)
        if not request.again or not plan_file.exists(folder):  # which is as old as the run
            plan_file.write(folder, request)
        if request.returns:
            boot_unit.write(folder, to_values(replace(asked, again=True, booted=True, secrets={})))
        process_records.write_agent(folder, processes.inspect(os.getpid()) or keeper, keeper)
    except OSError as error:
        raise NotReady(f"cannot write in {folder.own}: {error.strerror}") from error
    if os.getppid() != keeper.pid:  # what ends a run kills the keeper first, and this agent was on no record then
        raise NotReady("its keeper has ended")


def _furnish(request: RunRequest, folder: RunFolder) -> None:
    """Make the folder that each task works in, before the run begins.

    Copying may take seconds.

    Raises:
      NotReady: there is no room.
    """
    for task in request.tasks:
        own = folder.task(task.name)
        try:
            work_folder.fill(own, code_of(request, folder, "job") if "job" in request.code else None)
        except OSError as error:
            where = own / WORK
            raise NotReady(f"cannot copy the job's folder to {where}: {os.strerror(error.errno or 0)}") from error


def _keeping(request: RunRequest, folder: RunFolder) -> Optional[Shipped]:
    """Return the shipped launcher code for restarts of tasks; None without such code."""
    if "launcher" not in request.code:
        return None
    try:
        return Shipped(
            code_of(request, folder, "launcher"), folder.own, [folder.task(task.name) for task in request.tasks]
        )
    except (OSError, ValueError) as error:
        raise NotReady(f"cannot read the code that was sent: {error}; start again") from error


def _prepare(request: RunRequest, folder: RunFolder) -> Tuple[Dict[str, List[int]], Bookings]:
    """Check the tasks' needs of this host; book and return the GPUs of each.

    Raises:
      NotReady: something is missing or taken.
    """
    problems = [_taken(task) for task in request.tasks if not ports.can_listen(task.port)]
    sent = code_of(request, folder, "job") if "job" in request.code else folder.path
    if request.container is None:  # else the image has them
        problems += [
            f"no program {task.argv[0]} on this host" for task in request.tasks if not _has_program(task, sent)
        ]
    problems += [] if request.again else _missing_commands(request, sent)
    problems += exposed(request)
    if problems:
        raise NotReady("; ".join(dict.fromkeys(problems)))
    try:
        if any(task.chief for task in request.tasks) and not request.again:
            resume.prepare(folder, request.name, request.checkpoint_dir, request.resume, request.resume_from)
            owner.claim(folder, request.checkpoint_dir)
        wishes = {task.name: task.gpus for task in request.tasks}
        found = nvidia_smi.list_gpus() if assignment.needs_list(wishes) else []
        given = assignment.give_allotted(wishes, found, os.environ)
        bookings = Bookings(found, f"{request.run} (agent pid {os.getpid()})")
        bookings.book(given)
        return given, bookings
    except (ValueError, GpuTaken, nvidia_smi.NoAnswer) as error:
        raise NotReady(str(error)) from error


def _contain(request: RunRequest, folder: RunFolder) -> Optional[Container]:
    """Return the containers of the request's tasks; None where they run on this host itself.

    Raises:
      NotReady: the runtime or its image is missing.
    """
    try:
        return runtimes.of_run(request.container, folder.workdir, request.checkpoint_dir)
    except runtimes.Lacking as error:
        raise NotReady(str(error)) from error


def _limit(request: RunRequest, folder: RunFolder, container: Optional[Container]) -> Tuple[Terms, Booked]:
    """Return the terms of the tasks' limits, and their processors, which are booked until the agent ends.

    Raises:
      NotReady: this host cannot enforce some limit.
    """
    booked = Booked()
    terms = agree(wishes(request.tasks), booked.take, in_containers(this_host(), container))
    if terms.problems:
        raise NotReady("; ".join(terms.problems))
    try:
        if terms.place is not None:
            groups.write(folder, terms.place.folder)
    except OSError as error:
        raise NotReady(f"cannot write in {folder.own}: {error.strerror}") from error
    return terms, booked


def _has_program(task: TaskRequest, sent: Path) -> bool:
    """Return whether the task's program exists."""
    return _is_there(task.argv[0], sent, task.env.get("PATH"))


def _missing_commands(request: RunRequest, sent: Path) -> List[str]:
    """Return a text for each program of the keys ``on`` and ``notice`` that does not exist."""
    commands = [(f"on.{hook.event}", hook.command[0]) for hook in request.hooks if hook.command]
    commands += [("notice", request.notice.command[0])] if request.notice else []
    programs = [(key, os.path.expanduser(name)) for key, name in commands]
    return [f"no program {name} on this host, for {key}" for key, name in programs if not _is_there(name, sent)]


def _is_there(program: str, sent: Path, path: Optional[str] = None) -> bool:
    """Return whether a program exists in the code that was sent, or on a PATH: as its process would find it."""
    if os.path.dirname(program):
        program = os.path.join(str(sent), program)
    return shutil.which(program, path=path) is not None


def _taken(task: TaskRequest) -> str:
    who = ports.describe_holder(task.port)
    return f"port {task.port} of {task.name} is taken by {who}; end it or choose another port"


async def _live(
    request: RunRequest,
    folder: RunFolder,
    given: Dict[str, List[int]],
    terms: Terms,
    container: Optional[Container],
    bookings: Bookings,
    standing: Optional[firewall.Guard],
    send: Callable[[Dict[str, Any]], None],
    pulse: Pulse,
) -> int:
    processes.adopt_orphans()
    log_system_errors(asyncio.get_event_loop())
    events: asyncio.Queue[Any] = asyncio.Queue()
    tasks = HostTasks(
        request.tasks, folder, given, events.put_nowait, request.secrets, _keeping(request, folder), terms, container
    )
    agent = _agent(request, folder, tasks, events)
    clients = Clients(folder.own / "agent.sock", agent.answer)
    try:
        await agent.open()
        await clients.open()
        await bookings.answer()
    except OSError as error:
        raise NotReady(f"cannot listen: {error}") from error
    _handle_signals(request, agent)
    if standing is not None:
        _end_with_guard(standing, agent)
    send({"ready": True, "pid": os.getpid()})
    background.begin(request, folder)
    beside = [asyncio.ensure_future(pulse.beat()), *_watch_for_notice(request, folder, agent)]
    try:
        await agent.run()
        return AWAY if agent.is_away else OVER
    finally:
        await clients.close()
        await _leave_nothing(tasks, [standing.pid] if standing is not None else [])
        groups.remove(folder)
        bookings.release()
        for each in beside:
            each.cancel()


def _watch_for_notice(request: RunRequest, folder: RunFolder, agent: Agent) -> "List[asyncio.Future[None]]":
    """Begin to look for a notice that this host's machine is to go, where the request has a command for that."""
    if request.notice is None:
        return []
    work = folder.task(request.tasks[0].name) / WORK
    return [asyncio.ensure_future(notice.watch(request.notice, work, request.secrets, agent.leave))]


def _agent(request: RunRequest, folder: RunFolder, tasks: HostTasks, events: "asyncio.Queue[Any]") -> Agent:
    """Return the lead where the request has the plan of the whole run, else a member."""
    if request.run_plan is None:
        return Member(request, folder, tasks, events)
    return Lead(request, request.run_plan, folder, tasks, events)


def _handle_signals(request: RunRequest, agent: Agent) -> None:
    loop = asyncio.get_event_loop()

    def leave(name: str) -> None:
        if request.returns and boot_unit.is_going_down():
            say("the machine goes down; its next boot starts the agent again")
            agent.go_away()
        else:
            agent.leave(f"its agent received {name}")

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, leave, number.name)
    loop.add_signal_handler(signal.SIGCHLD, agent.wake)


def _end_with_guard(standing: firewall.Guard, agent: Agent) -> None:
    """End the agent when its guard ends: the run was promised one."""
    loop = asyncio.get_event_loop()

    def ended() -> None:
        loop.remove_reader(standing)
        agent.terminate("has lost its guard: nft has ended")

    loop.add_reader(standing, ended)


async def _leave_nothing(tasks: HostTasks, kept: Sequence[int]) -> None:
    """End everything that the tasks left, in bounded time.

    Children ``kept`` are the agent's own.
    """
    loop = asyncio.get_event_loop()
    until = loop.time() + SWEEP_S
    while loop.time() < until:
        tasks.stop_all(0.0, loop.time())
        tasks.poll(loop.time())
        if tasks.sweep(kept) == 0 and not tasks.running:
            return
        await asyncio.sleep(0.05)


def _forget(request: RunRequest, folder: RunFolder) -> None:
    """Remove the files of a start that failed; other hosts' files stay."""
    boot_unit.remove(folder)
    for path in (folder.own, *(folder.task(task.name) for task in request.tasks)):
        shutil.rmtree(str(path), ignore_errors=True)
    for path in (folder.own.parent, folder.path):
        with contextlib.suppress(OSError):
            path.rmdir()
