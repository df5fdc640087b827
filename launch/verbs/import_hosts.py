"""``launch import``"""

import os
from pathlib import Path
from typing import List, Optional

import click

from launch.errors import SUCCEEDED, UsageError
from launch.hostfile.import_formats import Listed, from_file, from_slurm, from_text
from launch.hostfile.writer import KINDS, written
from launch.view.console import say


@click.command("import")
@click.argument("path", metavar="[HOSTFILE]", type=click.Path(), required=False)
@click.option("-H", "--hosts", metavar="HOST:SLOTS,…", help="The hosts themselves, as for horovodrun.")
@click.option("--slurm", is_flag=True, help="The nodes of the Slurm allocation around this command.")
@click.option("--job", metavar="NAME", required=True, help="What is to be trained, as the key job.")
@click.option("--ps", metavar="N", type=click.IntRange(min=1), default=1, help="A ps on each of the first N hosts [1].")
@click.option("--ps-hosts", metavar="HOSTS", help="A ps on each of these instead: cpu[01-02].")
@click.option("--slots", type=click.Choice(list(KINDS)), default="gpus", help="What a slot is [gpus].")
def import_hosts(
    path: Optional[str], hosts: Optional[str], slurm: bool, job: str, ps: int, ps_hosts: Optional[str], slots: str
) -> int:
    """Prints a hosts file for the hosts of an MPI or DeepSpeed HOSTFILE, of -H, or of a Slurm allocation.

    \b
    Example:  launch import hostfile --job digits --ps 2 > hosts.yaml
    """
    given = [source for source in (path, hosts and "--hosts", slurm and "Slurm") if source]
    if len(given) != 1:
        found = " and ".join(map(str, given)) or "none"
        raise UsageError(f"launch import: expected one of HOSTFILE, --hosts and --slurm, found {found}")
    say(written(str(given[0]), job, _listed(path, hosts), slots, ps, ps_hosts).rstrip())
    return SUCCEEDED


def _listed(path: Optional[str], hosts: Optional[str]) -> List[Listed]:
    if path:
        return from_file(Path(path))
    return from_text(hosts) if hosts else from_slurm(os.environ)
