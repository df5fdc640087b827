"""The chief's command on this host, with another module in place of ``jobs.main``.

The command runs in its own working folder next to the folders of the run's tasks, with the chief's Python, code and
environment. The command ends with this process.

``jobs.describe`` builds the graph before the tasks start, with the chief's GPUs, as the chief would. ``jobs.describe``
trains nothing and opens no port. ``mistake`` reports why a graph cannot be built. It runs ``jobs.describe`` only if the
chief's own process, which waits for its turn, has not built the graph.

``jobs.export`` builds the SavedModel of a run's checkpoint, and ``export`` sends it to the launcher. ``export`` first
links the checkpoint into the command's folder, so the chief may remove the checkpoint meanwhile.
"""

import base64
import contextlib
import json
import os
import shutil
import subprocess
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

from cluster.protocol.checkpoint_files import NO_VERSION, version_of
from cluster.protocol.outcome import GRAPH_MISTAKE, read_outcome
from cluster.protocol.shared_files import open_to_read
from launch.agent.checkpoints import resume, stored
from launch.agent.containers.runtimes import Lacking
from launch.agent.containers.task_containers import OneShot
from launch.agent.errors import AgentError
from launch.agent.gpus import assignment, nvidia_smi
from launch.agent.linux.processes import die_with
from launch.agent.protocol import local_socket
from launch.agent.service.located import code_of, folder_of, located
from launch.agent.state import plan_file
from launch.agent.state.run_folder import RunFolder
from launch.agent.tasks import task_env, work_folder
from launch.agent.tasks.standbys import ENDED
from launch.agent.text import Redaction
from launch.agent.wire.run_request import Gpus, RunRequest, TaskRequest
from launch.agent.wire.verb_requests import ExportRequest, GraphAnswer

GRAPH_TASK = "graph:0"  # the name of its folder, next to the folders of the run's tasks
GRAPH_S = 50.0  # for the chief's process, and to build the graph after it has failed
PATIENCE_S = 1800.0  # for building the SavedModel or the delta
SILENT_S = 30.0  # without a reply of the lead, which replies repeatedly while the chief saves
STAGE_S = 2.0  # between two signs of progress
CHUNK = 1 << 20

Tell = Callable[[Dict[str, Any]], None]


class ChiefCommand:
    """The command line of the chief ``task``, and the ``folder`` in which it runs."""

    def __init__(self, request: RunRequest, task: TaskRequest, folder: Path, program: OneShot):
        self.task, self.folder, self._secrets, self._program = task, folder, request.secrets, program

    @contextmanager
    def running(
        self, module: str, arguments: Sequence[str] = (), gpus: Sequence[int] = (), **streams: Any
    ) -> "Iterator[subprocess.Popen[bytes]]":
        """Start the command, and yield its process, which is killed at the end of the context. Raises OSError.

        Args:
          module: the module that replaces ``jobs.main``.
          gpus: the GPUs that the process sees.
          streams: stdin, stdout and stderr, as for ``subprocess.Popen``; a missing stream is /dev/null.
        """
        argv = [module if word == "jobs.main" else word for word in self.task.argv]
        env = task_env.own_variables(self.task.env, self._secrets, 0, self.folder, list(gpus), self._program.outside)
        command = self._program.command([*argv, *arguments], env, self.task.folder, bool(gpus))
        nothing = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        process = subprocess.Popen(
            command.argv, cwd=self.task.folder, env=command.env, start_new_session=True,
            preexec_fn=die_with(os.getpid()), **{**nothing, **streams},
        )  # fmt: skip
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def cause(self, otherwise: Optional[str] = None) -> Optional[str]:
        """Return the mistake that the command has reported, or else ``otherwise``, without secrets."""
        outcome = read_outcome(self.folder)
        cause = otherwise if outcome is None or outcome.cause is None else outcome.cause
        return None if cause is None else Redaction(self._secrets.values(), [self.task.env], self._secrets).text(cause)


@contextmanager
def chief_command(request: RunRequest, name: str) -> Iterator[ChiefCommand]:
    """Yield the command of the request's only task, the chief, in a folder of this name; remove the folder at the end.

    Raises:
      OSError, ValueError: the folder cannot be filled.
      Lacking: the container of the tasks cannot run here.
    """
    run = folder_of(request)
    own = run.task(name)
    program = OneShot(name.split(":")[0], request.container, run.workdir, request.checkpoint_dir)
    try:
        task = located(replace(request, tasks=(replace(request.tasks[0], name=name),)), run).tasks[0]
        work_folder.fill(own, code_of(request, run, "job") if "job" in request.code else None)
        yield ChiefCommand(request, task, own, program)
    finally:
        program.end()
        shutil.rmtree(str(own), ignore_errors=True)


def mistake(request: RunRequest) -> GraphAnswer:
    """Return the reason why the graph of the request's only task, the chief, cannot be built.

    The answer has no reason where the graph can be built, or where another error ends the attempt.
    """
    try:
        until = time.monotonic() + GRAPH_S
        if request.tasks[0].waits and not _has_failed(folder_of(request)):
            return GraphAnswer()
        with chief_command(request, GRAPH_TASK) as command:
            return GraphAnswer(command.cause() if _build_graph(command, until) == GRAPH_MISTAKE else None)
    except (OSError, ValueError, nvidia_smi.NoDriverAnswer, Lacking, subprocess.TimeoutExpired):
        return GraphAnswer()  # no answer here: the tasks themselves report the error


def _has_failed(folder: RunFolder) -> bool:
    """Wait for the chief's process, and return whether it has ended by itself before its turn.

    Raises:
      OSError: the process is still loading after ``GRAPH_S`` seconds, or the agent has ended.
    """
    return bool(local_socket.ask_agent(folder.own, {"do": "prepared"}, GRAPH_S)["prepared"] == ENDED)


def _build_graph(command: ChiefCommand, until: float) -> int:
    """Return the exit code of ``jobs.describe``, which may take until the time ``until``."""
    with command.running("jobs.describe", ["--warm-start"], gpus=_gpus_for(command.task.gpus)) as building:
        return building.wait(max(0.0, until - time.monotonic()))


def _gpus_for(wish: Gpus) -> List[int]:
    # A job may look for GPUs while it builds its graph. The size of a share causes no mistake, so the command gets all.
    usable = assignment.allotted(nvidia_smi.list_gpus(), os.environ) if wish else []
    return usable if isinstance(wish, str) else [usable[number] for number in wish if number < len(usable)]


class NotExported(AgentError):
    """The error that an export has produced no SavedModel and no delta; the text is the reason."""


def export(request: ExportRequest, tell: Tell) -> None:
    """Export the requested checkpoint; send the SavedModel, or {"error": reason}, with ``tell``."""
    folder = folder_of(request.run)
    try:
        with chief_command(request.run, f"export:{os.getpid()}") as command:
            since = _since(request, folder, command.folder)  # before the chief saves, and removes an old checkpoint
            if request.save:
                _save(folder, tell)
            prefix = _checkpoint(request, folder, command.folder)
            found = _build(command, prefix, since, tell)
            _send(command.folder / "served", tell)
        tell({"done": found, "checkpoint": os.path.basename(prefix)})
    except (AgentError, ValueError) as error:
        tell({"error": str(error)})
    except OSError as error:
        tell({"error": f"cannot export into {folder.path}: {error.strerror or error}", "kind": "disk"})


def _save(folder: RunFolder, tell: Tell) -> None:
    """Let the chief save while training continues, if the run trains."""
    is_done = False
    tell({"stage": "waits for a checkpoint"})
    with contextlib.suppress(OSError):  # the run has ended since
        for reply in local_socket.replies(folder.own, {"do": "save"}, SILENT_S):
            tell({"stage": "waits for a checkpoint"})
            is_done = reply.get("done") is True
            if is_done or reply.get("last"):  # the connection stays open for further requests
                break
    if not is_done:
        tell({"stage": "exports the newest existing checkpoint, since the chief does not save now"})


def _checkpoint(request: ExportRequest, folder: RunFolder, own: Path) -> str:
    """Return the checkpoint to export, which no other process removes.

    Raises:
      NotExported: no such checkpoint exists.
    """
    if request.path is not None:
        path = os.path.abspath(os.path.expanduser(request.path))
        if not os.path.exists(f"{path}.index"):
            raise NotExported(f"--checkpoint: expected a checkpoint at {path}, such as …/model-800, found none")
        return path
    place = _place(folder)
    there = stored.checkpoints(place)
    wanted = [each for each in there if request.step in (None, each.step)]
    if not wanted:
        which = "" if request.step is None else f" of step {request.step}"
        known = ", ".join(str(each.step) for each in there) or "none"
        raise NotExported(f"expected a checkpoint{which} in {place} (steps there: {known}); train until one is saved")
    resume.link_all(wanted[-1], own / "checkpoint")
    return str(own / "checkpoint" / wanted[-1].prefix)


def _place(folder: RunFolder) -> Path:
    return resume.chief_folder(folder, plan_file.read(folder).checkpoint_dir)


def _since(request: ExportRequest, folder: RunFolder, own: Path) -> Optional[str]:
    """Return the checkpoint since which to export, which no other process removes; "0" for the whole model.

    Raises:
      NotExported: no checkpoint with this version exists.
    """
    if request.since in (None, NO_VERSION):
        return request.since
    place = _place(folder) if request.path is None else Path(os.path.expanduser(request.path)).absolute().parent
    versions: Dict[str, stored.LocalCheckpoint] = {}
    for each in stored.checkpoints(place):
        with contextlib.suppress(FileNotFoundError):  # the chief has removed it meanwhile
            versions[version_of(str(each.folder / each.prefix))] = each
    if request.since not in versions:
        known = ", ".join(versions) or "none"
        raise NotExported(
            f"--since: expected the version of a checkpoint that this host has, found {request.since} (there: {known});"
            " export the whole model with --since 0, and raise train.checkpoint.keep"
        )
    resume.link_all(versions[request.since], own / "since")
    return str(own / "since" / versions[request.since].prefix)


def _build(command: ChiefCommand, prefix: str, since: Optional[str], tell: Tell) -> Any:
    """Return the last line of ``jobs.export``'s output, parsed as JSON.

    Raises:
      NotExported: the build fails, or takes too long.
    """
    own, until = command.folder, time.monotonic() + PATIENCE_S
    arguments, what = ["--checkpoint", prefix, "--out", str(own / "served")], "SavedModel"
    if since is not None:
        (own / "served").mkdir()
        arguments, what = [*arguments, "--since", since], "delta"
    with open(str(own / "out"), "wb") as out, open(str(own / "log"), "wb") as log, command.running(
        "jobs.export", arguments, stdout=out, stderr=log
    ) as building:
        while _is_alive(building):
            tell({"stage": f"builds the {what}"})
            if time.monotonic() > until:
                raise NotExported(f"the {what} was not built within {PATIENCE_S:.0f} s")
    if building.returncode != 0:
        raise NotExported(str(command.cause(_last_line(own / "log"))))
    return json.loads((own / "out").read_text().splitlines()[-1])


def _is_alive(building: "subprocess.Popen[bytes]") -> bool:
    try:
        building.wait(STAGE_S)
    except subprocess.TimeoutExpired:
        return True
    return False


def _last_line(log: Path) -> str:
    return (log.read_text(errors="replace").strip().splitlines()[-1:] or ["it ended without a message"])[0]


def _send(folder: Path, tell: Tell) -> None:
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        with open_to_read(path) as file:
            tell({"file": path.relative_to(folder).as_posix(), "bytes": os.fstat(file.fileno()).st_size})
            for data in iter(lambda: file.read(CHUNK), b""):
                tell({"data": base64.b64encode(data).decode()})
