"""``launch export``: fetch the SavedModel of a run's checkpoint, or a delta, which the chief's host builds."""

import base64
import binascii
import json
import os
import re
import tempfile
import time
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path, PurePosixPath
from typing import IO, Any, Callable, Dict, Iterator, Mapping, Optional, Tuple

import click

from cluster.protocol.quantity import quantity
from cluster.protocol.shared_files import new_folder
from launch.agent.wire.typed_verbs import RUNS
from launch.agent.wire.verb_requests import ExportRequest, RunsRequest
from launch.errors import SUCCEEDED, CannotStart, HostProblem, LaunchError, ProblemKind, UsageError
from launch.fleet import LEAD_S, Fleet
from launch.history import newest_status
from launch.hosts.channel import Silence
from launch.hosts.conversation import Conversation
from launch.run.draft import RunStart, draft
from launch.signals import Interrupts
from launch.status.run import RunStatus
from launch.target import Target
from launch.verbs.options import JSON, OF_RUN, tell, with_hosts_file
from launch.view.console import note
from launch.view.differences import in_words

QUIET_S = 120.0  # after this silence, the host counts as stuck
LOOK_S = 0.2
_VERSION = re.compile(r"0|\d+-[0-9a-f]{8}")


@dataclass(frozen=True)
class ExportAnswer:
    """The object of ``export --json``.

    Attributes:
      run: Name of the run.
      checkpoint: Name of the checkpoint that was exported.
      folder: Path of the SavedModel or of the delta, on this machine.
      inputs: For each input of the signature, by name: `dtype`, and `shape` with null for any size.
      outputs: The same values for each output.
      tables: Rows of each embedding table, by name.
      version: Version of the checkpoint, which `--since` takes.
    """

    run: str
    checkpoint: str
    folder: str
    inputs: Dict[str, Any]
    outputs: Dict[str, Any]
    tables: Dict[str, int]
    version: str = ""


def request_of(
    target: Target,
    fleet: Fleet,
    status: RunStatus,
    checkpoint: Optional[str],
    note: Callable[[str], None],
    since: Optional[str] = None,
) -> ExportRequest:
    """Return the request to the host of the run's chief, and add the job's current code to ``fleet``.

    The request has the arguments with which the run was trained, since the file may have others by now.

    Args:
      checkpoint: the step of a checkpoint, or its path on that host; None for the newest. A live run then saves a
        checkpoint first.
      note: called with a line about the arguments that differ from the file's.
      since: the version since which to export a delta; None for a SavedModel.

    Raises:
      UsageError: the file has ``command``.
      CannotStart: the host of the chief does not answer.
      LaunchError: the job or a secret is missing.
    """
    spec = fleet.spec
    if spec.command is not None:
        raise UsageError(f"export: expected a hosts file with the key job, found command in {spec.path}")
    is_of_run = checkpoint is None or checkpoint.isdecimal() or f"/runs/{status.run}/" in os.path.normpath(checkpoint)
    args = _args_of(fleet, status.run) if is_of_run else None
    if args is not None:
        spec = replace(spec, args=_with_overrides(target, args))
        for line in _differences(spec.args, fleet.spec.args):
            note(line)
    planned = draft(target, RunStart(spec), datetime.now(timezone.utc))
    fleet.code = planned.code
    of_chief = planned.requests[planned.plan.lead]
    chief = tuple(task for task in of_chief.tasks if task.chief)
    run = replace(of_chief, run=status.run, host=fleet.lead, tasks=chief, run_plan=None)
    if checkpoint is None:
        return ExportRequest(run, save=status.state == "running", since=since)
    which: Dict[str, Any] = {"step": int(checkpoint)} if checkpoint.isdecimal() else {"path": checkpoint}
    return ExportRequest(run, since=since, **which)


def _args_of(fleet: Fleet, run: str) -> Optional[Dict[str, Any]]:
    """Return the arguments of the job in the run's record; None where an older launcher has recorded none.

    Raises:
      CannotStart: the host of the chief does not answer.
    """
    answers, problems = fleet.ask_for(RUNS, {fleet.lead: RunsRequest(fleet.lead, fleet.spec.workdir)}, LEAD_S)
    if problems:
        raise CannotStart(problems)
    records = [each.record for each in answers[fleet.lead].runs if each.record.run == run]
    return next((each.args for each in records if each.train), None)  # a record with arguments also has the keys


def _with_overrides(target: Target, args: Dict[str, Any]) -> Dict[str, Any]:
    """Return ``args`` after the overrides of this command, which apply to them as to the file's."""
    overrides = (f"args={json.dumps(args, ensure_ascii=False)}", *target.overrides)
    return replace(target, overrides=overrides).of_file().args


def _differences(used: Mapping[str, Any], of_file: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line with the arguments that are not the file's, where any differ."""
    shown = [
        f"{name}={_value(used, name)} (the file has {_value(of_file, name)})"
        for name in dict.fromkeys([*used, *of_file])
        if (name in used, used.get(name)) != (name in of_file, of_file.get(name))
    ]
    if shown:
        yield f"with the arguments of the run: {', '.join(shown)}"


def _value(args: Mapping[str, Any], name: str) -> str:
    return in_words(args[name]) if name in args else "none"


def fetch(fleet: Fleet, request: ExportRequest, folder: Path, note: Callable[[str], None]) -> Dict[str, Any]:
    """Fetch the SavedModel or the delta into the new folder ``folder``, completely or not at all.

    Returns:
      the host's last answer.

    Raises:
      HostProblem: the host is out of reach, or has nothing to send.
      LaunchError: the folder cannot be written.
      Interrupted: a signal came.
    """
    try:
        with new_folder(folder) as made, closing(fleet.contact(fleet.lead, "export", request)) as conversation:
            return _receive(conversation, made, fleet.interrupts, note)
    except OSError as error:
        raise LaunchError(f"cannot write {error.filename or folder}: {error.strerror}") from error


def fetch_delta(
    fleet: Fleet, request: ExportRequest, folder: Path, note: Callable[[str], None]
) -> Tuple[Dict[str, Any], Path]:
    """Fetch a delta into ``folder``, completely or not at all.

    Returns:
      The host's last answer, and the path of the delta; that of ``folder`` where nothing has changed.

    Raises: as ``fetch``.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".", dir=str(folder)) as own:
            found = fetch(fleet, request, Path(own, "delta"), note)
            version = found["done"]["version"]
            if version == request.since:
                note(f"{found['checkpoint']} is this version: nothing has changed")
                return found, folder
            name = f"{request.since}..{version}.npz"
            if [path.name for path in Path(own, "delta").iterdir()] != [name]:
                raise HostProblem(fleet.lead, ProblemKind.NOISE, f"expected one file {name[:200]!r}")
            os.replace(os.path.join(own, "delta", name), str(folder / name))
            return found, folder / name
    except OSError as error:
        raise LaunchError(f"cannot write {error.filename or folder}: {error.strerror}") from error


def _receive(
    conversation: Conversation, folder: Path, interrupts: Interrupts, note: Callable[[str], None]
) -> Dict[str, Any]:
    """Receive files until the host has sent all of them. Raises HostProblem, OSError, Interrupted."""
    file: Optional[IO[bytes]] = None
    left, stage = 0, ""
    try:
        while True:
            answer = _next(conversation, interrupts)
            if ("data" in answer) != (left > 0):
                raise conversation.noise_problem("expected the rest of a file, found another answer")
            if "stage" in answer:
                if answer["stage"] != stage:
                    stage = answer["stage"]
                    note(f"{conversation.host}: {stage}")
            elif "file" in answer:
                if file is not None:
                    file.close()
                file, left = _open(conversation, folder, answer["file"]), answer["bytes"]
            elif file is not None and "data" in answer:
                left -= file.write(_decoded(conversation, answer["data"]))
            else:
                return answer
    finally:
        if file is not None:
            file.close()


def _next(conversation: Conversation, interrupts: Interrupts) -> Dict[str, Any]:
    until = time.monotonic() + QUIET_S
    while True:
        interrupts.check()
        try:
            answer = conversation.receive(LOOK_S)
        except Silence:
            if time.monotonic() >= until:
                silent = f"no answer for {QUIET_S:.0f} s while it exports"
                raise HostProblem(conversation.host, ProblemKind.SILENT, silent) from None
            continue
        if answer is None:
            raise conversation.end_problem()
        return answer


def _open(conversation: Conversation, folder: Path, name: str) -> IO[bytes]:
    """Open a file of the SavedModel inside ``folder``, whatever name the host has sent."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\0" in name:
        raise conversation.noise_problem(f"expected the name of a file in a SavedModel, found {name[:200]!r}")
    path = folder.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    return open(str(path), "xb")


def _decoded(conversation: Conversation, data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise conversation.noise_problem(f"expected base64, found {data[:80]!r}") from None


@click.command()
@with_hosts_file
@click.argument("folder", metavar="DIR", type=click.Path())
@click.option(
    "--checkpoint", metavar="STEP|PATH",
    help="Step of a checkpoint of the run, or a path on the chief's host; default: the newest.",
)  # fmt: skip
@click.option(
    "--since", metavar="VERSION",
    help="Write only what has changed since this version into DIR, as one file; 0: the whole model as one file.",
)  # fmt: skip
@OF_RUN
@JSON
def export(target: Target, folder: str, checkpoint: Optional[str], since: Optional[str], as_json: bool) -> int:
    """Write a SavedModel of the newest run into the new folder DIR.

    The signature of the SavedModel has the inputs of the job's function predict, and no labels. The SavedModel
    contains the embedding tables. A run that trains saves a checkpoint first, and continues. The chief's host builds
    the SavedModel from the job's current file, with the arguments of the run.

    \b
    Example:  launch export hosts.yaml served
    """
    place = Path(folder).absolute()
    if since is None and os.path.lexists(str(place)):
        raise UsageError(f"DIR: expected a folder that does not exist yet, found {folder}; name another")
    if since is not None and not _VERSION.fullmatch(since):
        raise UsageError(f"--since: expected a version that export has printed, such as 800-1f3a9c0d, found {since!r}")
    with target.reach() as fleet:
        status = newest_status(fleet, str(target))
        request = request_of(target, fleet, status, checkpoint, note, since)
        if since is None:
            found = fetch(fleet, request, place, note)
        else:
            found, place = fetch_delta(fleet, request, place, note)
    values = asdict(ExportAnswer(status.run, found["checkpoint"], str(place), **found["done"]))
    tell(as_json, values, list(in_lines(values)))
    return SUCCEEDED


def in_lines(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the object of ``--json`` as lines for a person."""
    yield f"{values['checkpoint']} of {values['run']} is in {values['folder']}"
    yield f"version: {values['version']}"
    for side in ("inputs", "outputs"):
        yield f"{side}: " + ", ".join(f"{name} {_typed(each)}" for name, each in values[side].items())
    for name, rows in values["tables"].items():
        yield f"table {name}: {quantity(rows, 'row')}"


def _typed(described: Dict[str, Any]) -> str:
    shape = described["shape"]
    sizes = "" if shape is None else f"[{', '.join('any' if size is None else str(size) for size in shape)}]"
    return f"{described['dtype']}{sizes}"
