"""This host's part of ``launch diagnose``: everything that may explain the state of a run, in pieces.

Every section is a thread of its own, since a section may hang on a machine in trouble: in a file server, in a driver.
``gather`` sends each piece as it comes. At the deadline ``gather`` names the sections that are not done, and does not
wait for them. The sections change nothing. They ask a task for its stacks by a signal only where the task has announced
that it waits for that signal.

In a conversation {"do": "time"} is answered with {"time"}. {"do": "gather", …}, as ``gather`` takes it, is answered
with {"file", "text" or "json"} for each piece, and {"missing", "why"} for each section that has none. The last answer
is {"done": True}.
"""

import os
import queue
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional

from launch.agent.diagnosis import process_report, run_files
from launch.agent.diagnosis.run_files import Piece
from launch.agent.environments.environment import Environment
from launch.agent.gpus import nvidia_smi
from launch.agent.gpus import state as gpu_state
from launch.agent.linux import connections, kernel_log, machine, processes
from launch.agent.linux.kernel_log import Unreadable
from launch.agent.state import leftovers, plan_file, process_records
from launch.agent.state.plan_file import KeptPlan
from launch.agent.state.run_folder import RunFolder, expand
from launch.agent.state.runs import described, newest
from launch.agent.tasks.python_probe import Versions
from launch.agent.text.redaction import Redaction
from launch.agent.verbs import status
from launch.agent.wire.verb_requests import RunReference
from launch.status.moments import utc
from launch.status.values import from_values

Values = Dict[str, Any]
LOGS_SHARE, STACKS_SHARE, TRACES_SHARE = 0.7, 0.15, 0.1  # of the bytes that a host may tell
SMI_DETAILS = ["nvidia-smi", "-q", "-d", "MEMORY,UTILIZATION,ECC,TEMPERATURE,PERFORMANCE,PAGE_RETIREMENT"]


class Scene(NamedTuple):
    """The run that the sections look at; ``folder`` is None where no run of the name has been here."""

    request: Mapping[str, Any]
    folder: Optional[RunFolder]
    plan: KeptPlan
    redaction: Redaction
    until: float  # on the clock of time.monotonic

    @property
    def began(self) -> float:
        """Return the time of day at which the run began on this host.

        Where there is no run, the time is a day ago.
        """
        try:
            return (self.folder.own / "plan.json").stat().st_mtime if self.folder else time.time() - 86400
        except OSError:
            return time.time() - 86400


def diagnose(read: Callable[[], Values], tell: Callable[[Values], None]) -> None:
    """Answer the launcher's requests until its end is closed; ``read`` ends the process then."""
    while True:
        asked = read()
        if asked["do"] == "time":
            tell({"time": time.time()})
        else:
            gather(asked, tell)


def gather(request: Mapping[str, Any], tell: Callable[[Values], None]) -> None:
    """Send every piece within ``within_s``.

    ``request`` has what every verb about a run has, and ``within_s``. Also ``bytes``: the most bytes to send in all;
    the tasks' ``python``; and ``secrets``: the names of variables that are secrets.
    """
    scene = scene_of(request)
    running = Sections(scene)
    for piece in running.pieces():
        tell(piece)
    for name, why in running.missing():
        tell({"missing": name, "why": why})
    tell({"done": True, **(described(scene.folder) if scene.folder else {"run": None})})


def scene_of(request: Mapping[str, Any]) -> Scene:
    """Return the newest run of the name on this host, with its secrets known."""
    folder = newest(from_values(RunReference, request))
    try:
        plan = plan_file.read(folder) if folder else KeptPlan()
    except (OSError, ValueError):
        plan = KeptPlan()
    living = process_records.tasks_of(folder) if folder else []  # the values of secrets are in no file, only there
    environments = [
        dict(os.environ),
        *(task.env for task in plan.tasks or ()),
        *(processes.environment(process.pid) for process in living),
    ]
    redaction = Redaction(filter(None, [plan.token]), environments, request["secrets"])
    return Scene(request, folder, plan, redaction, time.monotonic() + request["within_s"])


class Sections:
    """The sections that run, and the pieces that they have found so far."""

    def __init__(self, scene: Scene):
        self._scene = scene
        self._found: queue.Queue[Values] = queue.Queue()
        self._running = dict.fromkeys(name for name in SECTIONS if scene.folder or name not in OF_A_RUN)
        self._running.update(dict.fromkeys(f"disk {folder}" for folder in _folders(scene)))
        for name in list(self._running):
            threading.Thread(target=self._look, args=[name], name=name, daemon=True).start()

    def pieces(self) -> Iterator[Values]:
        """Yield the pieces as they come, until all are found or the time is over."""
        while self._running:
            try:
                found = self._found.get(timeout=max(0.0, self._scene.until - time.monotonic()))
            except queue.Empty:
                return
            if "over" in found:
                del self._running[found["over"]]
            else:
                yield found

    def missing(self) -> Iterator[Any]:
        """Yield (section, why) for each section that is not done."""
        for name in self._running:
            yield name, f"not done within {self._scene.request['within_s']:.0f} s"

    def _look(self, name: str) -> None:
        try:
            section = _disk(Path(name[len("disk ") :])) if name.startswith("disk ") else SECTIONS[name](self._scene)
            for file, content in section:
                kind = "text" if isinstance(content, str) else "json"
                self._found.put({"file": file, kind: content})
        except Unreadable as why:
            self._found.put({"missing": name, "why": str(why)})
        except Exception as error:  # one section must not keep the others from being told
            self._found.put({"missing": name, "why": f"{type(error).__name__}: {error}"})
        self._found.put({"over": name})


# -- the sections


def _run_of(scene: Scene) -> RunFolder:
    if scene.folder is None:
        raise Unreadable("no run of this name has been here")
    return scene.folder


def _machine(scene: Scene) -> Iterator[Piece]:
    yield "machine.json", {**machine.machine(), "mounts": machine.mounts(_folders(scene))}


def _environment(scene: Scene) -> Iterator[Piece]:
    yield "environment.json", scene.redaction.environment(os.environ)


def _files(scene: Scene) -> Iterator[Piece]:
    folder = _run_of(scene)
    yield "plan.json", run_files.plan_of(folder, scene.redaction)
    yield from run_files.values(folder, scene.redaction)


def _status(scene: Scene) -> Iterator[Piece]:
    """Yield the status from the agent, or the last one that a gone agent wrote.

    The status of a gone agent shows what has surely changed since.
    """
    told = status.status(from_values(RunReference, {**scene.request, "run": _run_of(scene).run}))
    yield "status.json", scene.redaction.value(told["status"])


def _logs(scene: Scene) -> Iterator[Piece]:
    yield from run_files.logs(_run_of(scene), scene.redaction, int(LOGS_SHARE * scene.request["bytes"]))


def _traces(scene: Scene) -> Iterator[Piece]:
    yield from run_files.traces(_run_of(scene), scene.redaction, int(TRACES_SHARE * scene.request["bytes"]))


def _processes(scene: Scene) -> Iterator[Piece]:
    folder = _run_of(scene)
    found = process_report.described(folder, scene.redaction)
    agent = leftovers.agent_pid(folder)
    yield "live.json", {"agent": agent, "processes": found}
    yield "processes.txt", process_report.table(found)
    held = connections.connections_of([each["pid"] for each in found])
    yield "connections.txt", connections.table(held) + "\n"
    yield "connections.json", connections.summary(held)
    yield from process_report.stacks(folder, found, scene.redaction, int(STACKS_SHARE * scene.request["bytes"]))


def _kernel(scene: Scene) -> Iterator[Piece]:
    found = kernel_log.troubles(scene.began)
    lines = [f"{utc(each.time)} {each.kind}: {each.text}" for each in found]
    yield "kernel.txt", scene.redaction.text("".join(line + "\n" for line in lines) or "nothing since the run began\n")
    yield (
        "kernel.json",
        [{"time": each.time, "kind": each.kind, "text": scene.redaction.text(each.text)} for each in found],
    )


def _versions(scene: Scene) -> Iterator[Piece]:
    hashed = scene.plan.environment
    python = scene.request["python"]
    if hashed is not None:
        python = str(Environment(expand(scene.request["workdir"]), hashed).python)
    asked = Versions(python, {}, modules=(), packages=True)
    answers = asked.answers(max(1.0, scene.until - time.monotonic() - 1.0))
    yield "versions.json", {**answers, "code": scene.plan.code}


def _gpus(scene: Scene) -> Iterator[Piece]:
    state = gpu_state.driver_and_gpus()
    yield "gpus.json", scene.redaction.value(state)
    if state["driver"] is not None:
        for name, argv in (("nvidia-smi.txt", ["nvidia-smi"]), ("nvidia-smi-q.txt", SMI_DETAILS)):
            yield name, scene.redaction.text(nvidia_smi.ask(argv))


def _disk(folder: Path) -> Iterator[Piece]:
    yield "disks.json", {str(folder): machine.disk(folder)}


SECTIONS: Dict[str, Callable[[Scene], Iterator[Piece]]] = {
    "machine": _machine,
    "environment": _environment,
    "files": _files,
    "status": _status,
    "logs": _logs,
    "traces": _traces,
    "processes": _processes,
    "kernel messages": _kernel,
    "versions": _versions,
    "gpus": _gpus,
}
OF_A_RUN = ("files", "status", "logs", "traces", "processes")


def _folders(scene: Scene) -> List[Path]:
    """Return the folders whose disks matter."""
    places = [expand(scene.request["workdir"]), Path("/tmp"), Path("/dev/shm")]
    if scene.folder is not None:
        places.append(scene.folder.path)
    checkpoints = scene.plan.checkpoint_dir
    return list(dict.fromkeys([*places, *([expand(checkpoints)] if checkpoints else [])]))
