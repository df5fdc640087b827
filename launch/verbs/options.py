"""The argument FILE and the options of every verb about a hosts file, and their completion at the Tab key.

The Tab key completes hosts files, their tasks and hosts, and keys; Click itself completes flags.
"""

import functools
import json
import shlex
from pathlib import Path
from typing import Any, Callable, List, Mapping, Optional, Sequence, Tuple

import click
from click.shell_completion import CompletionItem

from cluster.errors import SpecError
from cluster.spec import load
from cluster.spec.schema import keys
from launch.errors import UsageError
from launch.target import Target
from launch.verbs.completion import paths
from launch.view.console import say

YAML = (".yaml", ".yml")


def complete_hosts_file(ctx: click.Context, param: click.Parameter, incomplete: str) -> List[str]:
    """Return YAML files, and folders that may contain them."""
    return list(paths(incomplete, lambda path: path.suffix in YAML))


def complete_host_list(ctx: click.Context, param: click.Parameter, incomplete: str) -> List[CompletionItem]:
    """Return any file, and the second word of ``launch import tfjob``."""
    words = [CompletionItem("tfjob")] if "tfjob".startswith(incomplete) else []
    return [*words, CompletionItem(incomplete, type="file")]


def shell_words(flag: str, text: str) -> List[str]:
    """Return the words of a command that a flag has as one text.

    Raises:
      UsageError: the text is no command of a shell.
    """
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{flag}: expected words as in a shell, found {text!r}: {error}") from None


def complete_task(ctx: click.Context, param: click.Parameter, incomplete: str) -> List[str]:
    """Return the tasks, roles and hosts of the file that the line names before.

    For a file that cannot be read, the list is empty.
    """
    try:
        spec = load(Path(ctx.params["file"]), ctx.params.get("overrides") or ())
    except (SpecError, OSError, KeyError, TypeError):
        return []
    names = [task.name for task in spec.tasks]
    roles = [f"{role}:*" for role in dict.fromkeys(task.role for task in spec.tasks)]
    return [word for word in [*names, *roles, *spec.hosts] if word.startswith(incomplete)]


def complete_override(ctx: click.Context, param: click.Parameter, incomplete: str) -> List[str]:
    """Return ``train.steps=``, for every key outside the items of a role."""
    return [f"{key}=" for key in keys() if key.startswith(incomplete) and not key.startswith("entry.")]


TASKS = click.argument("patterns", metavar="[TASK]...", nargs=-1, shell_complete=complete_task)
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout and nothing else.")
OF_RUN = click.option("--run", metavar="NAME", help="Mean this run, not the newest; `launch runs` lists the names.")
LOCAL = click.option(
    "--local/--no-local", default=None,
    help="Run every task of FILE on this machine, on free ports, without SSH; hosts keep their names. Later verbs "
    "find that run by themselves; --no-local makes them ask the hosts of FILE.",
)  # fmt: skip
SET = click.option(
    "--set", "overrides", metavar="KEY=VALUE", multiple=True, help="Override a key of FILE: train.steps=100.",
    shell_complete=complete_override,
)  # fmt: skip
_OPTIONS = (
    click.argument("file", metavar="FILE", type=click.Path(), shell_complete=complete_hosts_file),
    LOCAL,
    SET,
    click.option(
        "--include", metavar="WHAT", multiple=True, help="Keep only these hosts or tasks: gpu[01-04], worker:3, ps:*.",
        shell_complete=complete_task,
    ),
    click.option(
        "--exclude", metavar="WHAT", multiple=True, help="Leave out these hosts or tasks.",
        shell_complete=complete_task,
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
        run: Optional[str] = None,  # for a verb with ``OF_RUN``
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
    """Print the findings of a verb on stdout: one JSON object, or lines for a person."""
    say(*([json.dumps(values)] if as_json else lines))
