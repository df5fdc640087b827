"""``launch run``: ``launch up`` for a program and hosts on the command line.

The verb writes a hosts file, because later verbs need one. As with every hosts file, its folder is shipped.
"""

import os
from pathlib import Path
from shlex import quote
from typing import List, Optional, Tuple

import click
from click.shell_completion import CompletionItem

from cluster.errors import SpecError
from cluster.protocol.shared_files import replace_file
from cluster.spec import load
from cluster.spec.reading import text_of, unfit_for_name
from launch.errors import UsageError
from launch.hostfile.import_formats import from_text
from launch.hostfile.schedulers import Hosts
from launch.hostfile.writer import only_user, ssh_configuration, written
from launch.target import Target
from launch.verbs.options import LOCAL, SET
from launch.verbs.up import train
from launch.view.console import fold, note

FILE = "launch-run.yaml"
SOURCE = "`launch run`, which replaces this file"


def complete_program(ctx: click.Context, param: click.Parameter, incomplete: str) -> List[CompletionItem]:
    """Complete PROGRAM by files."""
    return [CompletionItem(incomplete, type="file")]


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("-H", "--hosts", metavar="HOST:SLOTS,…", required=True, help="Hosts, and number of workers on each [1].")
@click.option(
    "--ps", metavar="N", type=click.IntRange(min=0), default=0, help="Put a ps on each of the first N hosts too [0]."
)
@click.option("-d", "--detach", is_flag=True, help="Return once every task is up; the run continues.")
@click.option("--save", metavar="FILE", default=FILE, help=f"Write this hosts file; the run gets its name [{FILE}].")
@LOCAL
@SET
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED, shell_complete=complete_program)
def run(
    hosts: str,
    ps: int,
    detach: bool,
    save: str,
    local: Optional[bool],
    overrides: Tuple[str, ...],
    program: Tuple[str, ...],
) -> int:
    """Run PROGRAM as workers on hosts, without a hosts file.

    The command writes and prints a hosts file for PROGRAM, and trains as `launch up` does with that file. Later
    verbs take the file. The folder of the file is shipped to the hosts: by default, the current folder.

    \b
    Example:  launch run -H gpu01:2,gpu02:2 -- python train.py --rank={index}
    """
    found = Hosts(from_text(hosts))
    _refuse_several_users(found)
    text = written(SOURCE, {"command": list(program)}, found, "processes", ps)
    _write(Path(save), text)
    note(f"wrote {save}, which `launch status {quote(save)}` and the other verbs take:", *text.splitlines())
    return train(Target(save, local, overrides), detach)


def _refuse_several_users(found: Hosts) -> None:
    lines = ssh_configuration(found.workers)
    if lines and only_user(found.workers) is None:
        hint = "leave the users out, and begin ~/.ssh/config with these lines:"
        raise UsageError("\n".join([f"--hosts: expected one user for all hosts, or none; {hint}", *lines]))


def _write(path: Path, text: str) -> None:
    """Write the hosts file; replace only a file that this verb has written."""
    before = text_of(path) if path.exists() else ""
    if before and not before.startswith(f"# From {SOURCE}"):
        raise UsageError(f"{path}: expected no file, or a file that `launch run` wrote, found another file; see --save")
    expected = unfit_for_name(path.stem)
    if expected is not None:
        raise UsageError(f"--save: expected {expected} before .yaml, found {path.stem!r}")
    gone = _hosts(path) if before else ()
    try:
        replace_file(path, text)
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        raise UsageError(f"{path}: expected a file that can be written, found {reason}; see --save") from None
    left = sorted(set(gone) - set(_hosts(path)))
    if left:
        note(f"{path} no longer names {fold(left)}: verbs about earlier runs there need a file that does; see --save")


def _hosts(path: Path) -> Tuple[str, ...]:
    try:
        return load(path).hosts
    except SpecError:  # edited since
        return ()
