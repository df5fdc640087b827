"""Export a checkpoint of a run on the host of its chief, and send the SavedModel to the launcher.

The chief's command builds it in a working folder of its own, with the chief's Python and environment, as ``graph``
does. The checkpoint is linked into that folder first, so that the chief may remove it meanwhile.
"""

import base64
import contextlib
import json
import os
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, List

from cluster.protocol.outcome import read_outcome
from cluster.protocol.regular_file import open_to_read
from launch.agent.checkpoints import local, resume
from launch.agent.linux.processes import die_with
from launch.agent.protocol import local_client
from launch.agent.service.located import code_of, folder_of, located
from launch.agent.state import plan_file
from launch.agent.state.run_folder import RunFolder
from launch.agent.tasks import task_env, work_folder
from launch.agent.text.redaction import Redaction
from launch.agent.wire.export_request import ExportRequest
from launch.agent.wire.run_request import TaskRequest

PATIENCE_S = 1800.0  # for building the SavedModel
SAVE_S = 60.0  # for the chief to save: more than its lead waits
STAGE_S = 2.0  # between two signs that it goes on
CHUNK = 1 << 20

Tell = Callable[[Dict[str, Any]], None]


class NotExported(Exception):
    """There is no SavedModel; the text is the reason."""


def export(request: ExportRequest, tell: Tell) -> None:
    """Send the SavedModel, or {"error": why not}."""
    folder = folder_of(request.run)
    name = f"export:{os.getpid()}"
    own = folder.task(name)
    try:
        if request.save:
            _save(folder, tell)
        prefix = _checkpoint(request, folder, own)
        chief = located(replace(request.run, tasks=(replace(request.run.tasks[0], name=name),)), folder).tasks[0]
        work_folder.fill(own, code_of(request.run, folder, "job") if "job" in request.run.code else None)
        found = _build(chief, request, own, prefix, tell)
        _send(own / "served", tell)
        tell({"done": found, "checkpoint": os.path.basename(prefix)})
    except (NotExported, ValueError) as error:
        tell({"error": str(error)})
    except OSError as error:
        tell({"error": f"cannot export into {own}: {error.strerror or error}", "kind": "disk"})
    finally:
        shutil.rmtree(str(own), ignore_errors=True)


def _save(folder: RunFolder, tell: Tell) -> None:
    """Let the chief save, if the run trains."""
    tell({"stage": "waits for a checkpoint"})
    with contextlib.suppress(OSError):  # it has ended since
        local_client.ask(folder.own, {"do": "save"}, SAVE_S)


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
    there = local.checkpoints(place)
    wanted = [each for each in there if request.step in (None, each.step)]
    if not wanted:
        which = "" if request.step is None else f" of step {request.step}"
        known = ", ".join(str(each.step) for each in there) or "none"
        raise NotExported(f"expected a checkpoint{which} in {place}, found steps {known}; train until one is saved")
    resume.link_all(wanted[-1], own / "checkpoint")
    return str(own / "checkpoint" / wanted[-1].prefix)


def _build(chief: TaskRequest, request: ExportRequest, own: Path, prefix: str, tell: Tell) -> Any:
    """Return what ``jobs.export`` prints.

    Raises:
      NotExported: it fails, or takes too long.
    """
    argv: List[str] = ["jobs.export" if word == "jobs.main" else word for word in chief.argv]
    env = task_env.task_environment(chief.env, request.run.secrets, 0, own, [])
    until = time.monotonic() + PATIENCE_S
    with open(str(own / "out"), "wb") as out, open(str(own / "log"), "wb") as log:
        building = subprocess.Popen(
            [*argv, "--checkpoint", prefix, "--out", str(own / "served")], cwd=chief.folder, env=env,
            stdin=subprocess.DEVNULL, stdout=out, stderr=log, start_new_session=True, preexec_fn=die_with(os.getpid()),
        )  # fmt: skip
        try:
            while _is_alive(building):
                tell({"stage": "builds the SavedModel"})
                if time.monotonic() > until:
                    raise NotExported(f"the SavedModel was not built within {PATIENCE_S:.0f} s")
        finally:
            building.kill()
            building.wait()
    if building.returncode != 0:
        raise NotExported(_cause(chief, request, own))
    return json.loads((own / "out").read_text().splitlines()[-1])


def _is_alive(building: "subprocess.Popen[bytes]") -> bool:
    try:
        building.wait(STAGE_S)
    except subprocess.TimeoutExpired:
        return True
    return False


def _cause(chief: TaskRequest, request: ExportRequest, own: Path) -> str:
    outcome = read_outcome(own)
    last = (own / "log").read_text(errors="replace").strip().splitlines()[-1:] or ["it ended without a message"]
    cause = last[0] if outcome is None or outcome.cause is None else outcome.cause
    secrets = request.run.secrets
    return Redaction(secrets.values(), [chief.env], secrets).text(cause)


def _send(folder: Path, tell: Tell) -> None:
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        with open_to_read(path) as file:
            tell({"file": path.relative_to(folder).as_posix(), "bytes": os.fstat(file.fileno()).st_size})
            for data in iter(lambda: file.read(CHUNK), b""):
                tell({"data": base64.b64encode(data).decode()})
