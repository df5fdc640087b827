"""``launch import tfjob``"""

import shlex
from pathlib import Path
from typing import List, Optional

import click

from cluster.errors import SpecError
from launch.errors import SUCCEEDED, UsageError
from launch.tfjob.hosts_file import dealt, parsed_hosts, written
from launch.tfjob.jobs import read_tfjob
from launch.tfjob.manifest_reader import find_tfjob
from launch.verbs.options import complete_hosts_file
from launch.view.console import note, say


@click.command("import tfjob")
@click.argument("path", metavar="MANIFEST", type=click.Path(), shell_complete=complete_hosts_file)
@click.argument("hosts", metavar="[HOSTS]", required=False)
@click.option("--name", metavar="NAME", help="Choose the TFJob of this name, where the file has several.")
@click.option("--ps-hosts", metavar="HOSTS", help="Put the ps on these hosts instead: cpu[01-02].")
@click.option("--entrypoint", metavar="WORDS", help="Command of the image, for a container that has none of its own.")
def import_tfjob(
    path: str, hosts: Optional[str], name: Optional[str], ps_hosts: Optional[str], entrypoint: Optional[str]
) -> int:
    """Print a hosts file from a TFJob manifest of Kubernetes.

    HOSTS are those for the tasks, such as gpu[01-04],cpu01. Each gets one task after the other. Without HOSTS, every
    task has a placeholder that no host can have. What a hosts file cannot express is listed on stderr.

    \b
    Example:  launch import tfjob tfjob.yaml 'gpu[01-04]' > hosts.yaml
    """
    named = parsed_hosts(hosts, "HOSTS") if hosts is not None else None
    for_ps = parsed_hosts(ps_hosts, "--ps-hosts") if ps_hosts is not None else None
    job, reader = read_tfjob(find_tfjob(Path(path), name), _words(entrypoint))
    if reader.problems:
        raise SpecError(reader.problems)
    text = written(path, job, dealt(job.roles, named, for_ps))
    note(*reader.notes())
    say(text.rstrip())
    return SUCCEEDED


def _words(entrypoint: Optional[str]) -> List[str]:
    try:
        return shlex.split(entrypoint or "")
    except ValueError as error:
        raise UsageError(f"--entrypoint: expected words as in a shell, found {entrypoint!r}: {error}") from None
