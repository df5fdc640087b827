"""The argument FILE and the options that every verb about a hosts file takes."""

import functools
import json
from typing import Any, Callable, Mapping, Optional, Sequence, Tuple

import click

from launch.target import Target
from launch.verbs import shell_completion
from launch.view.console import say

TASKS = click.argument("patterns", metavar="[TASK]...", nargs=-1, shell_complete=shell_completion.tasks)
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout and nothing else.")
OF_RUN = click.option("--run", metavar="NAME", help="Mean this run, not the newest; `launch runs` lists the names.")
_OPTIONS = (
    click.argument("file", metavar="FILE", type=click.Path(), shell_complete=shell_completion.hosts_files),
    click.option(
        "--local/--no-local", default=None,
        help="Run every task of FILE on this machine, on free ports, without SSH; hosts keep their names. Later verbs "
        "find that run by themselves; --no-local makes them ask the hosts of FILE.",
    ),
    click.option(
        "--set", "overrides", metavar="KEY=VALUE", multiple=True, help="Override a key of FILE: train.steps=100.",
        shell_complete=shell_completion.overrides,
    ),
    click.option(
        "--include", metavar="WHAT", multiple=True, help="Keep only these hosts or tasks: gpu[01-04], worker:3, ps:*.",
        shell_complete=shell_completion.tasks,
    ),
    click.option(
        "--exclude", metavar="WHAT", multiple=True, help="Leave out these hosts or tasks.",
        shell_complete=shell_completion.tasks,
    ),
)  # fmt: skip


def with_hosts_file(verb: Callable[..., int]) -> Callable[..., int]:
    """Pass FILE and the options about it to a verb, as its first argument: a ``Target``."""

    @functools.wraps(verb)
    def called(
        file: str,
        local: Optional[bool],
        overrides: Tuple[str, ...],
        include: Tuple[str, ...],
        exclude: Tuple[str, ...],
        run: Optional[str] = None,  # of a verb with ``OF_RUN``
        **options: Any,
    ) -> int:
        return verb(Target(file, local, overrides, include, exclude, run), **options)

    for option in reversed(_OPTIONS):
        called = option(called)
    return called


def port_option(default: int = 0) -> Callable[..., Any]:
    """Return the option ``--port`` of a verb that serves a page on this machine."""
    kind, meaning = click.IntRange(0, 65535), "Port on this machine; 0: a free one."
    return click.option("--port", type=kind, default=default, show_default=True, help=meaning)


def tell(as_json: bool, values: Mapping[str, Any], lines: Sequence[str]) -> None:
    """Print the findings of a verb: one JSON object, or lines for a person, on stdout."""
    say(*([json.dumps(values)] if as_json else lines))
