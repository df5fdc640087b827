"""The agent process: from the launcher's request to the last file removed.

``serve`` prepares the host (lock, ports, GPUs, checkpoint, folders), says that it is
ready, and then is the lead or a member until the run is over.
"""

import asyncio
import contextlib
import os
import shutil
import signal
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from cluster.task import tf_config
from cluster.template import fill
from launch.agent import gpus, guard, ports, processes, records, resume
from launch.agent.agent import Agent
from launch.agent.booking import Bookings, GpuTaken
from launch.agent.clients import Clients
from launch.agent.environment import Busy, Environment
from launch.agent.exposure import exposed
from launch.agent.folder import RunFolder, expand
from launch.agent.lead import Lead
from launch.agent.locks import NameTaken, hold
from launch.agent.member import Member
from launch.agent.pulse import Pulse
from launch.agent.tasks import HostTasks

SWEEP_S = 10.0


class NotReady(Exception):
    """This host cannot take part in the run; the text says why and what to do."""


def serve(
    plan: Dict[str, Any], tell: Callable[[Dict[str, Any]], None], keeper: processes.Process, pulse: Pulse
) -> None:
    """Runs this host's part of ``plan``; ``tell`` takes one answer, ready or an error."""
    folder = RunFolder(expand(plan["workdir"]), plan["run"], plan["host"])
    try:
        with hold(folder, plan["name"]), _environment(plan, folder):
            _locate(plan, folder)
            secrets = plan.pop("secrets", {})
            _record(plan, folder, keeper)
            given, bookings = _prepare(plan, folder)
            with guard.standing(plan) as standing:
                asyncio.run(_live(plan, folder, given, bookings, standing, secrets, tell, pulse))
    except (NotReady, NameTaken, guard.Unguarded) as error:
        if not plan.get("again"):  # else the run's files are those of the agent before
            _forget(folder)
        tell({"error": str(error)})


@contextlib.contextmanager
def _environment(plan: Mapping[str, Any], folder: RunFolder) -> Iterator[None]:
    """Keeps the environment that the tasks run in from being removed, where the plan names one."""
    if plan.get("environment") is None:
        yield
        return
    environment = Environment(folder.workdir, plan["environment"])
    try:
        with environment.held(alone=False):
            if not environment.is_ready():
                raise NotReady(f"its Python environment is not built; build it with `{plan['setup']}`")
            environment.touch()
            yield
    except Busy:
        raise NotReady("its Python environment is being built; wait for `launch setup` to end") from None


def _record(plan: Mapping[str, Any], folder: RunFolder, keeper: processes.Process) -> None:
    """Writes down what this host was asked to run and who runs it, before there is anything to end."""
    try:
        if not plan.get("again") or folder.read("plan.json") is None:  # which is as old as the run
            folder.write("plan.json", plan)
        records.write_agent(folder, processes.inspect(os.getpid()) or keeper, keeper)
    except OSError as error:
        raise NotReady(f"cannot write in {folder.own}: {error.strerror}") from error


def _locate(plan: Dict[str, Any], folder: RunFolder) -> None:
    """Turns the plan's placeholders into this host's paths, and tells each task of the cluster."""
    code = {kind: str(folder.workdir / "code" / digest) for kind, digest in plan["code"].items()}
    places = {"code": code.get("job", ""), "run_folder": str(folder.path)}
    if plan.get("environment") is not None:
        places["environment"] = str(Environment(folder.workdir, plan["environment"]).path)
    for task in plan["tasks"]:
        task["folder"] = code[task["folder"]]
        task["argv"] = [fill(word, places) for word in task["argv"]]
        task["env"] = {key: value.replace("{code}", places["code"]) for key, value in task["env"].items()}
        task["env"]["TF_CONFIG"] = tf_config(plan["cluster"], task["role"], task["index"])
        task["argv"][0] = os.path.expanduser(task["argv"][0])


def _prepare(plan: Mapping[str, Any], folder: RunFolder) -> Tuple[Dict[str, List[int]], Bookings]:
    """Checks what the tasks need of this host; returns the GPUs of each, booked.

    Raises:
      NotReady: something is missing or taken.
    """
    problems = [_taken(task) for task in plan["tasks"] if not ports.can_listen(task["port"])]
    problems += [f"no program {task['argv'][0]} on this host" for task in plan["tasks"] if not _has_program(task)]
    problems += exposed(plan)
    if problems:
        raise NotReady("; ".join(dict.fromkeys(problems)))
    try:
        if any(task.get("chief") for task in plan["tasks"]) and not plan.get("again"):
            wanted = resume.Wanted(**plan["resume_from"]) if plan.get("resume_from") else None
            resume.prepare(folder, plan["name"], plan.get("checkpoint_dir"), plan.get("resume", False), wanted)
        wishes = {task["name"]: task["gpus"] for task in plan["tasks"]}
        found = gpus.list_gpus() if gpus.needs_list(wishes) else []
        given = gpus.give(wishes, len(found))
        bookings = Bookings(found, f"{plan['run']} (agent pid {os.getpid()})")
        bookings.book(given)
        return given, bookings
    except (ValueError, GpuTaken) as error:
        raise NotReady(str(error)) from error


def _has_program(task: Mapping[str, Any]) -> bool:
    """Whether the task's program is there, looked for as its process would: in its folder, on its PATH."""
    program = task["argv"][0]
    if os.path.dirname(program):
        program = os.path.join(task["folder"], program)
    return shutil.which(program, path=task["env"].get("PATH")) is not None


def _taken(task: Mapping[str, Any]) -> str:
    who = ports.describe_holder(task["port"])
    return f"port {task['port']} of {task['name']} is taken by {who}; end it or choose another port"


async def _live(
    plan: Dict[str, Any],
    folder: RunFolder,
    given: Dict[str, List[int]],
    bookings: Bookings,
    standing: Optional[guard.Guard],
    secrets: Mapping[str, str],
    tell: Callable[[Dict[str, Any]], None],
    pulse: Pulse,
) -> None:
    processes.adopt_orphans()
    events: asyncio.Queue[Any] = asyncio.Queue()
    tasks = HostTasks(plan, folder, given, events.put_nowait, secrets)
    leads = plan["lead"]["host"] == plan["host"]
    agent: Agent = (Lead if leads else Member)(plan, folder, tasks, events)
    clients = Clients(folder.own / "agent.sock", agent.answer)
    try:
        await agent.open()
        await clients.open()
        await bookings.answer()
    except OSError as error:
        raise NotReady(f"cannot listen: {error}") from error
    _heed_signals(agent)
    if standing is not None:
        _heed_its_end(standing, agent)
    tell({"ready": True, "pid": os.getpid()})
    beating = asyncio.ensure_future(pulse.beat())
    try:
        await agent.run()
    finally:
        await clients.close()
        await _leave_nothing(tasks, [standing.pid] if standing is not None else [])
        bookings.release()
        beating.cancel()


def _heed_signals(agent: Agent) -> None:
    loop = asyncio.get_event_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, agent.terminate, "got a signal to end")
    loop.add_signal_handler(signal.SIGCHLD, agent.wake)


def _heed_its_end(standing: guard.Guard, agent: Agent) -> None:
    """Without its guard the run does not go on: it was promised one."""
    loop = asyncio.get_event_loop()

    def ended() -> None:
        loop.remove_reader(standing)
        agent.terminate("has lost its guard: nft has ended")

    loop.add_reader(standing, ended)


async def _leave_nothing(tasks: HostTasks, kept: Sequence[int]) -> None:
    """Ends whatever the tasks left behind, in bounded time; children ``kept`` are the agent's own."""
    loop = asyncio.get_event_loop()
    until = loop.time() + SWEEP_S
    while loop.time() < until:
        tasks.stop_all(0.0, loop.time())
        tasks.poll(loop.time())
        if tasks.sweep(kept) == 0 and not tasks.running:
            return
        await asyncio.sleep(0.05)


def _forget(folder: RunFolder) -> None:
    """Removes what a start that failed has made; other hosts' files stay."""
    shutil.rmtree(str(folder.own), ignore_errors=True)
    for path in (folder.own.parent, folder.path):
        with contextlib.suppress(OSError):
            path.rmdir()
