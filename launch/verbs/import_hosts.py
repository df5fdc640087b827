"""``launch import``: print a hosts file from a list of hosts."""

import os
from pathlib import Path
from typing import Any, Dict, List, Optional

import click

from launch.errors import SUCCEEDED, UsageError
from launch.hostfile.import_formats import from_file, from_text
from launch.hostfile.schedulers import SCHEDULERS, Hosts
from launch.hostfile.writer import KINDS, only_user, ssh_configuration, written
from launch.verbs.options import complete_host_list, shell_words
from launch.view.console import note, say

NAMES = {"slurm": "Slurm", "pbs": "PBS", "sge": "Grid Engine", "lsf": "LSF"}


@click.command("import")
@click.argument("path", metavar="[HOSTFILE]", type=click.Path(), required=False, shell_complete=complete_host_list)
@click.option("-H", "--hosts", metavar="HOST:SLOTS,…", help="Hosts and their slots, as for horovodrun.")
@click.option("--slurm", is_flag=True, help="Use the nodes of the Slurm allocation.")
@click.option("--pbs", is_flag=True, help="Use the hosts of the PBS job.")
@click.option("--sge", is_flag=True, help="Use the hosts of the Grid Engine job.")
@click.option("--lsf", is_flag=True, help="Use the hosts of the LSF job.")
@click.option("--job", metavar="NAME", help="Job to train: the value of the key job.")
@click.option("--command", metavar="WORDS", help="Program to run instead of a job: the value of the key command.")
@click.option(
    "--ps",
    metavar="N",
    type=click.IntRange(min=0),
    help="Put a ps on each of the first N hosts [1; with --command 0].",
)
@click.option("--ps-hosts", metavar="HOSTS", help="Put a ps on each of these hosts instead: cpu[01-02].")
@click.option("--slots", type=click.Choice(list(KINDS)), help="Meaning of a slot [gpus; with --command processes].")
def import_hosts(
    path: Optional[str],
    hosts: Optional[str],
    job: Optional[str],
    command: Optional[str],
    ps: Optional[int],
    ps_hosts: Optional[str],
    slots: Optional[str],
    **schedulers: bool,
) -> int:
    """Print a hosts file from the host list of MPI or a batch job.

    The hosts are those of HOSTFILE, of --hosts, or of the batch job around this command.

    \b
    Example:  launch import hostfile --job digits --ps 2 > hosts.yaml
    """
    named = [name for name, is_given in schedulers.items() if is_given]
    sources = [path, hosts and "--hosts", *map(NAMES.__getitem__, named)]
    source = _one("HOSTFILE, --hosts, --slurm, --pbs, --sge and --lsf", sources)
    _one("--job and --command", [job and "--job", command and "--command"])
    program: Dict[str, Any] = {"job": job} if job else {"command": shell_words("--command", str(command))}
    scheduler = named[0] if named else None
    found = _found(path, hosts, scheduler)
    if found.ps is not None and (ps is not None or ps_hosts is not None):
        raise UsageError("launch import: expected neither --ps nor --ps-hosts: group 0 of the job is for the ps")
    servers = (1 if job else 0) if ps is None else ps
    text = written(source, program, found, slots or _meaning(scheduler, command), servers, ps_hosts)
    if only_user(found.workers) is None or ps_hosts:
        _note_users(found)
    say(text.rstrip())
    return SUCCEEDED


def _one(expected: str, given: List[Optional[str]]) -> str:
    """Return the only option that is given."""
    found = [each for each in given if each]
    if len(found) != 1:
        raise UsageError(f"launch import: expected one of {expected}, found {' and '.join(found) or 'none'}")
    return found[0]


def _found(path: Optional[str], hosts: Optional[str], scheduler: Optional[str]) -> Hosts:
    if scheduler:
        return SCHEDULERS[scheduler](os.environ)
    return Hosts(from_file(Path(path)) if path else from_text(str(hosts)))


def _meaning(scheduler: Optional[str], command: Optional[str]) -> str:
    """Return the meaning of a slot where ``--slots`` is not given."""
    if command:
        return "processes"
    if scheduler not in (None, "slurm"):
        raise UsageError(
            f"launch import: expected --slots, found none; a slot of {NAMES[str(scheduler)]} may be a processor core "
            "(--slots cores) or stand for a GPU (--slots gpus)"
        )
    return "gpus"


def _note_users(found: Hosts) -> None:
    """Print the users of hosts that one ``ssh.user`` cannot express."""
    lines = ssh_configuration(found.workers)
    if lines:
        note("a hosts file cannot name the user of a single host; begin ~/.ssh/config with these lines:", *lines)
