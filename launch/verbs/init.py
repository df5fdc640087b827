"""``launch init``"""

import shlex
from pathlib import Path

import click

from launch.errors import SUCCEEDED
from launch.hostfile.starter import write
from launch.view.console import say


@click.command()
@click.argument("name", type=click.Path())
def init(name: str) -> int:
    """Write a first job into the new folder NAME.

    The folder has a table, a job that learns from it, a hosts file of this machine, and a script that predicts
    with the result. Nothing that exists is overwritten.

    \b
    Example:  launch init houses
              launch up houses/hosts.yaml
    """
    folder = Path(name)
    files = write(folder)
    say(f"wrote {folder}: {', '.join(files)}", f"train it with `launch up {shlex.quote(str(folder / 'hosts.yaml'))}`")
    return SUCCEEDED
