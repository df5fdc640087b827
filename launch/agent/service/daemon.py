"""The agent process, from the launcher's request to the removal of its last file.

``serve`` locks the run's name on this host, prepares the host, and reports that the agent is ready. Then the process is
the lead or a member until the run is over.
"""

import asyncio
import os
import signal
from typing import Any, Callable, Dict, Optional, Sequence

from launch.agent import after, leftovers, notice
from launch.agent.linux import processes
from launch.agent.linux.file_lock import NoLocks
from launch.agent.linux.open_files import ALL, allow_open_files
from launch.agent.network import firewall
from launch.agent.retention import pruning
from launch.agent.service.agent import Agent, Clients
from launch.agent.service.keeper import Pulse
from launch.agent.service.keeping import AWAY, FAILED, OVER, TAKEN, beat, patience_s
from launch.agent.service.located import folder_of, located
from launch.agent.service.member import Member
from launch.agent.service.preparation import HostShare, NotReady, environment, forget, prepare
from launch.agent.state import boot_unit, runs
from launch.agent.state.locks import NameTaken, hold, no_removal
from launch.agent.state.log import say, say_seldom
from launch.agent.state.run_folder import RunFolder
from launch.agent.tasks import work_folder
from launch.agent.tasks.host_tasks import HostTasks
from launch.agent.wire.run_request import RunRequest

SWEEP_S = 10.0


def serve(asked: RunRequest, send: Callable[[Dict[str, Any]], None], keeper: processes.Process, pulse: Pulse) -> int:
    """Run this host's part of the run, as ``asked`` requests, and return an exit code for the keeper.

    ``send`` receives one answer, ready or an error. The agent sends its heartbeats to the keeper by ``pulse``.
    """
    allow_open_files(ALL)
    folder = folder_of(asked)
    request = located(asked, folder)
    try:
        if not request.again:  # before anything of another run is ended; ``prepare`` looks once more
            runs.refuse_ended(folder, request.follows)
        with hold(folder, request.name, request.file), environment(request, folder):
            left = leftovers.end_earlier_runs(folder, request.name, request.file)
            with no_removal(folder.workdir):  # of the run to resume from, and of the code
                prepared = prepare(asked, request, folder, keeper)

            def ready(answer: Dict[str, Any]) -> None:
                send({**answer, "ended": left, "notes": list(prepared.notes)})

            peers = None if request.guard is None else request.peers or ()
            with firewall.standing(request.run, firewall.ports(request), peers) as standing:
                code = asyncio.run(_live(request, folder, prepared, standing, ready, pulse))
            if code == OVER:
                work_folder.tidy_all(request, folder)
        return code
    except (NotReady, NameTaken, runs.EndedForGood, NoLocks, firewall.Unguarded) as error:
        if not request.again:  # else the run's files belong to the earlier agent
            forget(request, folder)
        send({"error": str(error), **({"kind": "ended"} if isinstance(error, runs.EndedForGood) else {})})
        return TAKEN if isinstance(error, NameTaken) else FAILED


async def _live(
    request: RunRequest,
    folder: RunFolder,
    prepared: HostShare,
    standing: Optional[firewall.Guard],
    send: Callable[[Dict[str, Any]], None],
    pulse: Pulse,
) -> int:
    processes.adopt_orphans()
    log_system_errors(asyncio.get_event_loop())
    events: asyncio.Queue[Any] = asyncio.Queue()
    tasks = HostTasks(request.tasks, folder, prepared.share, events.put_nowait, request.secrets)
    agent = _agent(request, folder, tasks, events)
    clients = Clients(folder.own / "agent.sock", agent.answer)
    try:
        await agent.open()
        await clients.open()
        await prepared.bookings.answer()
    except OSError as error:
        raise NotReady(f"cannot listen: {error}") from error
    _handle_signals(request, agent)
    if standing is not None:
        _end_with_guard(standing, agent)
    send({"ready": True, "pid": os.getpid()})
    pruning.begin_beside(request, folder)
    beside = [
        asyncio.ensure_future(beat(pulse.write, patience_s(request.lost_after_s), agent.left_s)),
        *notice.begin(request, folder, agent.leave),
    ]
    kept = [standing.pid] if standing is not None else []
    try:
        await agent.run()
        await leave_nothing(tasks, kept)
        if agent.is_away:
            return AWAY
        await after.run(request.after, folder, request.secrets, tasks.record)
        return OVER
    finally:
        await clients.close()
        await leave_nothing(tasks, kept)  # left by commands, or by an agent that ends by an exception
        prepared.release(folder)
        for each in beside:
            each.cancel()


def _agent(request: RunRequest, folder: RunFolder, tasks: HostTasks, events: "asyncio.Queue[Any]") -> Agent:
    """Return the lead where the request has the plan of the whole run, else a member."""
    if request.run_plan is None:
        return Member(request, folder, tasks, events)
    from launch.agent.service.lead import Lead  # 60 modules, of which most hosts need none

    return Lead(request, request.run_plan, folder, tasks, events)


def _handle_signals(request: RunRequest, agent: Agent) -> None:
    loop = asyncio.get_event_loop()

    def leave(name: str) -> None:
        if request.returns and boot_unit.is_going_down():
            say("the machine is shutting down; its next boot starts the agent again")
            agent.go_away()
        else:
            agent.leave(f"its agent received {name}")

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, leave, number.name)
    loop.add_signal_handler(signal.SIGCHLD, agent.wake)


def _end_with_guard(standing: firewall.Guard, agent: Agent) -> None:
    """End the agent when its guard ends: the run requires a guard."""
    loop = asyncio.get_event_loop()

    def ended() -> None:
        loop.remove_reader(standing)
        agent.terminate("has lost its firewall guard, because nft has ended")

    loop.add_reader(standing, ended)


async def leave_nothing(tasks: HostTasks, kept: Sequence[int]) -> None:
    """End every process that the tasks left, within a bounded time.

    ``kept`` has the pids of the agent's own children, which do not end.
    """
    loop = asyncio.get_event_loop()
    until = loop.time() + SWEEP_S
    while loop.time() < until:
        tasks.stop_all(0.0, loop.time())
        tasks.poll(loop.time())
        if tasks.sweep(kept) == 0 and not tasks.running:
            return
        await asyncio.sleep(0.05)


def log_system_errors(loop: asyncio.AbstractEventLoop) -> None:
    """Log the system errors of an event loop, such as too many open files, but at most one line a minute."""
    loop.set_exception_handler(_log_error)


def _log_error(loop: asyncio.AbstractEventLoop, context: Dict[str, Any]) -> None:
    error = context.get("exception")
    if isinstance(error, OSError):
        say_seldom("system", f"{context.get('message')}: {error}")
    else:
        loop.default_exception_handler(context)
