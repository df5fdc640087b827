"""``launch import``"""

import os
from pathlib import Path
from typing import List, Optional

import click

from launch.errors import SUCCEEDED, UsageError
from launch.hostfile.import_formats import Listed, from_file, from_slurm, from_text
from launch.hostfile.writer import KINDS, written
from launch.verbs.options import complete_host_list
from launch.view.console import say


@click.command("import")
@click.argument("path", metavar="[HOSTFILE]", type=click.Path(), required=False, shell_complete=complete_host_list)
@click.option("-H", "--hosts", metavar="HOST:SLOTS,…", help="Hosts and their slots, as for horovodrun.")
@click.option("--slurm", is_flag=True, help="Use the nodes of the Slurm allocation around this command.")
@click.option("--job", metavar="NAME", required=True, help="Job to train: the value of the key job.")
@click.option(
    "--ps", metavar="N", type=click.IntRange(min=1), default=1, help="Put a ps on each of the first N hosts [1]."
)
@click.option("--ps-hosts", metavar="HOSTS", help="Put a ps on each of these hosts instead: cpu[01-02].")
@click.option("--slots", type=click.Choice(list(KINDS)), default="gpus", help="Meaning of a slot [gpus].")
def import_hosts(
    path: Optional[str], hosts: Optional[str], slurm: bool, job: str, ps: int, ps_hosts: Optional[str], slots: str
) -> int:
    """Print a hosts file from an MPI, DeepSpeed or Slurm host list.

    The hosts are those of HOSTFILE, of --hosts, or of the Slurm allocation around this command.

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
