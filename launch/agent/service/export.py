"""Export a checkpoint of a run on the host of its chief, and send the SavedModel to the launcher.

``jobs.export`` builds it. The checkpoint is linked into its folder first, so that the chief may remove it meanwhile.
"""

import base64
import contextlib
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any, Callable, Dict

from cluster.protocol.shared_files import open_to_read
from launch.agent.checkpoints import resume, stored
from launch.agent.errors import AgentError
from launch.agent.protocol import local_socket
from launch.agent.service.chief_command import ChiefCommand, chief_command
from launch.agent.service.located import folder_of
from launch.agent.state import plan_file
from launch.agent.state.run_folder import RunFolder
from launch.agent.wire.verb_requests import ExportRequest

PATIENCE_S = 1800.0  # for building the SavedModel
SILENT_S = 30.0  # of the lead, which replies again and again while the chief saves
STAGE_S = 2.0  # between two signs that it goes on
CHUNK = 1 << 20

Tell = Callable[[Dict[str, Any]], None]


class NotExported(AgentError):
    """There is no SavedModel; the text is the reason."""


def export(request: ExportRequest, tell: Tell) -> None:
    """Send the SavedModel, or {"error": why not}."""
    folder = folder_of(request.run)
    try:
        if request.save:
            _save(folder, tell)
        with chief_command(request.run, f"export:{os.getpid()}") as command:
            prefix = _checkpoint(request, folder, command.folder)
            found = _build(command, prefix, tell)
            _send(command.folder / "served", tell)
        tell({"done": found, "checkpoint": os.path.basename(prefix)})
    except (AgentError, ValueError) as error:
        tell({"error": str(error)})
    except OSError as error:
        tell({"error": f"cannot export into {folder.path}: {error.strerror or error}", "kind": "disk"})


def _save(folder: RunFolder, tell: Tell) -> None:
    """Let the chief save while training goes on, if the run trains."""
    is_done = False
    tell({"stage": "waits for a checkpoint"})
    with contextlib.suppress(OSError):  # it has ended since
        for reply in local_socket.replies(folder.own, {"do": "save"}, SILENT_S):
            tell({"stage": "waits for a checkpoint"})
            is_done = reply.get("done") is True
    if not is_done:
        tell({"stage": "takes the newest checkpoint that is there: the chief saves none now"})


def _checkpoint(request: ExportRequest, folder: RunFolder, own: Path) -> str:
    """Return the checkpoint to export, which nobody else removes.

    Raises:
      NotExported: there is none.
    """
    if request.path is not None:
        path = os.path.abspath(os.path.expanduser(request.path))
        if not os.path.exists(f"{path}.index"):
            raise NotExported(f"--checkpoint: expected a checkpoint at {path}, such as …/model-800, found none")
        return path
    place = resume.chief_folder(folder, plan_file.read(folder).checkpoint_dir)
    there = stored.checkpoints(place)
    wanted = [each for each in there if request.step in (None, each.step)]
    if not wanted:
        which = "" if request.step is None else f" of step {request.step}"
        known = ", ".join(str(each.step) for each in there) or "none"
        raise NotExported(f"expected a checkpoint{which} in {place}, found steps {known}; train until one is saved")
    resume.link_all(wanted[-1], own / "checkpoint")
    return str(own / "checkpoint" / wanted[-1].prefix)


def _build(command: ChiefCommand, prefix: str, tell: Tell) -> Any:
    """Return what ``jobs.export`` prints.

    Raises:
      NotExported: it fails, or takes too long.
    """
    own, until = command.folder, time.monotonic() + PATIENCE_S
    arguments = ["--checkpoint", prefix, "--out", str(own / "served")]
    with open(str(own / "out"), "wb") as out, open(str(own / "log"), "wb") as log:
        building = command.start("jobs.export", arguments, stdout=out, stderr=log)
        try:
            while _is_alive(building):
                tell({"stage": "builds the SavedModel"})
                if time.monotonic() > until:
                    raise NotExported(f"the SavedModel was not built within {PATIENCE_S:.0f} s")
        finally:
            building.kill()
            building.wait()
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
