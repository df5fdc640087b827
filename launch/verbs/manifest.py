"""``launch manifest``"""

import re
from pathlib import Path

import click

from cluster.errors import SpecError
from cluster.spec.reading import read_document
from launch.errors import SUCCEEDED, UsageError
from launch.target import Target
from launch.tfjob.manifests import as_text
from launch.tfjob.manifests import manifest as made
from launch.verbs.options import with_hosts_file
from launch.view.console import note, say


@click.command()
@with_hosts_file
@click.option("--image", metavar="IMAGE", required=True, help="Image of every container; it has to hold the program.")
@click.option("--python", metavar="WORD", default="python", show_default=True, help="Text for {python} in the command.")
def manifest(target: Target, image: str, python: str) -> int:
    """Print a TFJob manifest for the program of FILE.

    The image has to hold the files that the program needs. What a TFJob cannot express is listed on stderr.

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
