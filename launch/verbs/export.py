"""``launch export``: fetch the SavedModel of a run's checkpoint, or a delta, which the chief's host builds."""

import json
import os
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Mapping, Optional

import click

from cluster.protocol.checkpoint_files import VERSION
from cluster.protocol.quantity import quantity
from launch.agent.wire.typed_verbs import RUNS
from launch.agent.wire.verb_requests import ExportRequest, RunsRequest
from launch.errors import SUCCEEDED, CannotStart, UsageError
from launch.fleet import LEAD_S, Fleet
from launch.history import newest_status
from launch.run.draft import RunStart, draft
from launch.status.run import RunStatus
from launch.target import Target
from launch.verbs.export_files import fetch, fetch_delta
from launch.verbs.options import JSON, OF_RUN, tell, with_hosts_file
from launch.view.console import note
from launch.view.differences import in_words


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
    version: str


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
    if since is not None and not VERSION.fullmatch(since):
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
