"""This host's part of ``launch diagnose``: all facts that may explain the state of a run, in pieces.

``gather`` sends each piece as it arrives. At the deadline ``gather`` names the sections that are not done. The sections
change nothing. A section asks a task for its stacks by a signal only where the task has announced that it waits for
that signal.

The answer to {"do": "time"} is {"time"}. The answers to {"do": "gather"} with a ``DiagnoseRequest`` are {"file", "text"
or "json"} for each piece, and {"missing", "why"} for each missing section. The last answer is {"done": True}.
"""

import contextlib
import os
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional

from cluster.protocol.typed_json import from_values
from launch.agent import facts as host_facts
from launch.agent import leftovers
from launch.agent.diagnosis import evidence
from launch.agent.facts import Piece, Section, pieces
from launch.agent.gpus import nvidia_smi
from launch.agent.linux import kernel_log, processes, procfs, sockets
from launch.agent.linux.kernel_log import Unreadable
from launch.agent.state import plan_file, process_records
from launch.agent.state.plan_file import KeptPlan
from launch.agent.state.run_folder import RunFolder, expand
from launch.agent.state.runs import described, newest, stamp
from launch.agent.text import Redaction
from launch.agent.verbs import status
from launch.agent.wire.diagnose_request import DiagnoseRequest
from launch.agent.wire.host_facts import FactsRequest, Gap
from launch.status.run import utc

Values = Dict[str, Any]
# Shares of the bytes that a host may send:
LOGS_SHARE, STACKS_SHARE, TRACES_SHARE, SPANS_SHARE = 0.6, 0.15, 0.1, 0.1
SMI_DETAILS = ["nvidia-smi", "-q", "-d", "MEMORY,UTILIZATION,ECC,TEMPERATURE,PERFORMANCE,PAGE_RETIREMENT"]


class Scene(NamedTuple):
    """The run that the sections examine; ``folder`` is None where no run of the name has been here."""

    request: DiagnoseRequest
    folder: Optional[RunFolder]
    plan: KeptPlan
    redaction: Redaction

    @property
    def began(self) -> float:
        """Return the time of day at which the run began on this host; without a run, the time a day ago.

        An agent gives plan.json a newer time once a day. From then on the time in the run's name counts.
        """
        if self.folder is not None:
            with contextlib.suppress(OSError):
                written = (self.folder.own / "plan.json").stat().st_mtime
                return min(written, stamp(self.folder.run) or written)
        return time.time() - 86400


def diagnose(receive: Callable[[], Values], send: Callable[[Values], None]) -> None:
    """Answer the launcher's requests until the launcher closes the connection; ``receive`` then ends the process."""
    while True:
        values = receive()
        if values["do"] == "time":
            send({"time": time.time()})
        else:
            gather(from_values(DiagnoseRequest, values), send)


def gather(request: DiagnoseRequest, send: Callable[[Values], None]) -> None:
    """Send every piece that arrives within ``request.within_s``, and name the sections that are missing then."""
    scene = scene_of(request)
    for piece in pieces(sections(scene), request.within_s):
        if isinstance(piece, Gap):
            send({"missing": piece.section, "why": piece.why})
        else:
            file, content = piece
            send({"file": file, "text" if isinstance(content, str) else "json": content})
    send({"done": True, **(described(scene.folder) if scene.folder else {"run": None})})


def scene_of(request: DiagnoseRequest) -> Scene:
    """Return the newest run of the request's name on this host, its plan, and the secrets to remove from texts."""
    folder = newest(request.run)
    try:
        plan = plan_file.read(folder) if folder else KeptPlan()
    except (OSError, ValueError):
        plan = KeptPlan()
    living = process_records.tasks_of(folder) if folder else []  # only these have the values of secrets, no file has
    environments = [
        dict(os.environ),
        *(task.env for task in plan.tasks or ()),
        *(processes.environment(process.pid) for process in living),
    ]
    redaction = Redaction(filter(None, [plan.token]), environments, request.secrets)
    return Scene(request, folder, plan, redaction)


def sections(scene: Scene) -> Dict[str, Section]:
    """Return the sections of this host, and of the run where one exists."""
    named = [(name, section) for name, section in SECTIONS.items() if scene.folder or name not in OF_A_RUN]
    found: Dict[str, Section] = {name: partial(section, scene) for name, section in named}
    request, plan = scene.request, scene.plan
    folders = tuple(map(str, _folders(scene)))
    asked = FactsRequest(
        request.run.workdir, request.python, plan.environment, {}, folders, trial=False, container=plan.container
    )
    shared = host_facts.sections(asked, request.within_s)
    found.update({name: partial(_files_of_facts, scene, section) for name, section in shared.items()})
    return found


# -- the sections; their pieces are files of the archive


def _files_of_facts(scene: Scene, facts: Section) -> Iterator[Piece]:
    further = {"versions": {"code": scene.plan.code}}
    for name, value in facts():
        yield f"{name}.json", scene.redaction.value({**value, **further.get(name, {})})


def _run_of(scene: Scene) -> RunFolder:
    if scene.folder is None:
        raise Unreadable("no run of this name has been here")
    return scene.folder


def _machine(scene: Scene) -> Iterator[Piece]:
    yield "machine.json", {**procfs.machine(), "mounts": procfs.mounts(_folders(scene))}


def _environment(scene: Scene) -> Iterator[Piece]:
    yield "environment.json", scene.redaction.environment(os.environ)


def _files(scene: Scene) -> Iterator[Piece]:
    folder = _run_of(scene)
    yield "plan.json", evidence.plan_of(folder, scene.redaction)
    yield from evidence.values(folder, scene.redaction)


def _status(scene: Scene) -> Iterator[Piece]:
    """Yield the status from the agent, or the last status that an ended agent wrote.

    The status of an ended agent shows its tasks as lost.
    """
    found = status.status(replace(scene.request.run, run=_run_of(scene).run))
    yield "status.json", scene.redaction.value(found["status"])


def _within(
    share: float, files: Callable[[RunFolder, Redaction, int], Iterator[Piece]]
) -> Callable[[Scene], Iterator[Piece]]:
    """Return the section for some files of a run, with this share of the bytes."""
    return lambda scene: files(_run_of(scene), scene.redaction, int(share * scene.request.bytes))


def _processes(scene: Scene) -> Iterator[Piece]:
    folder = _run_of(scene)
    found = evidence.described(folder, scene.redaction)
    agent = leftovers.agent_pid(folder)
    yield "live.json", {"agent": agent, "processes": found}
    yield "processes.txt", evidence.table(found)
    held = sockets.connections_of([each["pid"] for each in found])
    yield "connections.txt", sockets.connection_table(held) + "\n"
    yield "connections.json", sockets.connection_summary(held)
    yield from evidence.stacks(folder, found, scene.redaction, int(STACKS_SHARE * scene.request.bytes))


def _kernel(scene: Scene) -> Iterator[Piece]:
    found = kernel_log.troubles(scene.began)
    lines = [f"{utc(each.time)} {each.kind}: {each.text}" for each in found]
    yield "kernel.txt", scene.redaction.text("".join(line + "\n" for line in lines) or "nothing since the run began\n")
    yield (
        "kernel.json",
        [{"time": each.time, "kind": each.kind, "text": scene.redaction.text(each.text)} for each in found],
    )


def _nvidia_smi(scene: Scene) -> Iterator[Piece]:
    for name, argv in (("nvidia-smi.txt", ["nvidia-smi"]), ("nvidia-smi-q.txt", SMI_DETAILS)):
        found = nvidia_smi.ask(argv)
        if found:
            yield name, scene.redaction.text(found)


SECTIONS: Dict[str, Callable[[Scene], Iterator[Piece]]] = {
    "machine": _machine,
    "environment": _environment,
    "files": _files,
    "status": _status,
    "logs": _within(LOGS_SHARE, evidence.logs),
    "traces": _within(TRACES_SHARE, evidence.traces),
    "spans": _within(SPANS_SHARE, evidence.spans),
    "processes": _processes,
    "kernel messages": _kernel,
    "nvidia-smi": _nvidia_smi,
}
OF_A_RUN = ("files", "status", "logs", "traces", "spans", "processes")


def _folders(scene: Scene) -> List[Path]:
    """Return the folders whose disks matter."""
    places = [expand(scene.request.run.workdir), Path("/tmp"), Path("/dev/shm")]
    if scene.folder is not None:
        places.append(scene.folder.path)
    checkpoints = scene.plan.checkpoint_dir
    return list(dict.fromkeys([*places, *([expand(checkpoints)] if checkpoints else [])]))
