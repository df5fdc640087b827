"""``launch import tfjob`` and ``launch manifest``: convert TFJobs of Kubernetes into hosts files, and back."""

import re
from pathlib import Path
from typing import Optional

import click

from cluster.errors import SpecError
from cluster.spec.reading import read_document
from launch.errors import SUCCEEDED, UsageError
from launch.target import Target
from launch.tfjob.hosts_file import dealt, parsed_hosts, written
from launch.tfjob.jobs import read_tfjob
from launch.tfjob.manifest_reader import find_tfjob
from launch.tfjob.manifests import as_text
from launch.tfjob.manifests import manifest as made
from launch.verbs.options import complete_hosts_file, shell_words, with_hosts_file
from launch.view.console import note, say


@click.command("import tfjob")
@click.argument("path", metavar="MANIFEST", type=click.Path(), shell_complete=complete_hosts_file)
@click.argument("hosts", metavar="[HOSTS]", required=False)
@click.option("--name", metavar="NAME", help="Choose the TFJob of this name, where the file has several.")
@click.option("--ps-hosts", metavar="HOSTS", help="Put the ps on these hosts instead: cpu[01-02].")
@click.option(
    "--entrypoint", metavar="WORDS", help='Entry point of the image, for a container without a command; "" for none.'
)
def import_tfjob(
    path: str, hosts: Optional[str], name: Optional[str], ps_hosts: Optional[str], entrypoint: Optional[str]
) -> int:
    """Print a hosts file from a TFJob manifest of Kubernetes.

    HOSTS are the hosts for the tasks, such as gpu[01-04],cpu01. Tasks are assigned to the hosts in turn. Without HOSTS,
    every task has a placeholder that no host can have as its name. Values that a hosts file cannot express are listed
    on stderr.

    \b
    Example:  launch import tfjob tfjob.yaml 'gpu[01-04]' > hosts.yaml
    """
    named = parsed_hosts(hosts, "HOSTS") if hosts is not None else None
    for_ps = parsed_hosts(ps_hosts, "--ps-hosts") if ps_hosts is not None else None
    words = None if entrypoint is None else shell_words("--entrypoint", entrypoint)
    job, reader = read_tfjob(find_tfjob(Path(path), name), words)
    if reader.problems:
        raise SpecError(reader.problems)
    text = written(path, job, dealt(job.roles, named, for_ps))
    note(*reader.notes())
    say(text.rstrip())
    return SUCCEEDED


@click.command()
@with_hosts_file
@click.option("--image", metavar="IMAGE", required=True, help="Image of every container; it has to hold the program.")
@click.option("--python", metavar="WORD", default="python", show_default=True, help="Text for {python} in the command.")
def manifest(target: Target, image: str, python: str) -> int:
    """Print a TFJob manifest for the program of FILE.

    The image has to hold the files that the program needs. Keys that a TFJob cannot express are listed on stderr.

    \b
    Example:  launch manifest hosts.yaml --image registry/train:1 > tfjob.yaml
    """
    if not re.fullmatch(r"[A-Za-z0-9][\w.:/@-]*", image):
        raise UsageError(f"--image: expected the name of an image such as registry/train:1, found {image!r}")
    spec = target.spec()
    document, _ = read_document(Path(target.file), target.overrides)
    found = made(spec, document, image, python)
    if found.problems:
        raise SpecError(found.problems)
    note(*found.notes)
    say(as_text(found.values).rstrip())
    return SUCCEEDED
