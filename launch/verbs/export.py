"""``launch export``"""

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, Optional

import click

from cluster.protocol.quantity import quantity
from launch.errors import SUCCEEDED, UsageError
from launch.run.follower import newest_status
from launch.run.saved_model import ExportAnswer, fetch, request_of
from launch.target import Target
from launch.verbs.options import JSON, OF_RUN, tell, with_hosts_file
from launch.view.console import note


@click.command()
@with_hosts_file
@click.argument("folder", metavar="DIR", type=click.Path())
@click.option(
    "--checkpoint", metavar="STEP|PATH",
    help="Step of a checkpoint of the run, or a path on the chief's host; default: the newest.",
)  # fmt: skip
@OF_RUN
@JSON
def export(target: Target, folder: str, checkpoint: Optional[str], as_json: bool) -> int:
    """Write a SavedModel of the newest run into the new folder DIR.

    Its signature has the inputs of the job's function predict, so no labels, and embedding tables are in it.
    A run that trains saves a checkpoint first, and goes on. The chief's host builds the SavedModel from the
    job as its file is now.

    \b
    Example:  launch export hosts.yaml served
    """
    place = Path(folder).absolute()
    if os.path.lexists(str(place)):
        raise UsageError(f"DIR: expected a folder that does not exist yet, found {folder}; name another")
    with target.reach() as fleet:
        status = newest_status(fleet, str(target))
        request = request_of(target, fleet, status, checkpoint)
        found = fetch(fleet, request, place, note)
    values = asdict(ExportAnswer(status.run, found["checkpoint"], str(place), **found["done"]))
    tell(as_json, values, list(in_lines(values)))
    return SUCCEEDED


def in_lines(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the object of ``--json`` in lines for a person."""
    yield f"{values['checkpoint']} of {values['run']} is in {values['folder']}"
    for side in ("inputs", "outputs"):
        yield f"{side}: " + ", ".join(f"{name} {_typed(each)}" for name, each in values[side].items())
    for name, rows in values["tables"].items():
        yield f"table {name}: {quantity(rows, 'row')}"


def _typed(described: Dict[str, Any]) -> str:
    shape = described["shape"]
    sizes = "" if shape is None else f"[{', '.join('any' if size is None else str(size) for size in shape)}]"
    return f"{described['dtype']}{sizes}"
