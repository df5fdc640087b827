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
HERE = "hosts.yaml"  # the hosts file where none is named
BEFORE_A_RUN = ("up", "plan", "check", "setup", "verify", "grid", "manifest")  # verbs that need no earlier run


def complete_hosts_file(ctx: click.Context, param: click.Parameter, incomplete: str) -> List[str]:
    """Return YAML files and folders; for a verb about tasks, also the tasks of the file ``HERE``."""
    files = list(paths(incomplete, lambda path: path.suffix in YAML))
    of_tasks = any(each.name == "patterns" for each in ctx.command.params)
    return files + (complete_task(ctx, param, incomplete) if of_tasks else [])


def complete_host_list(ctx: click.Context, param: click.Parameter, incomplete: str) -> List[CompletionItem]:
    """Complete an argument by files, and by ``tfjob``, the second word of the verb ``import tfjob``."""
    words = [CompletionItem("tfjob")] if "tfjob".startswith(incomplete) else []
    return [*words, CompletionItem(incomplete, type="file")]


class HostsFile(click.Argument):
    """The argument FILE, which may be left out where this folder has the file ``HERE``."""

    def consume_value(self, ctx: click.Context, opts: Any) -> Any:
        """Return FILE; a first word that cannot be a hosts file belongs to the next argument."""
        word, rest = opts.get(self.name), self._next(ctx)
        if rest is not None and isinstance(word, str) and not is_file(word) and not ctx.resilient_parsing:
            given = opts.get(rest.name)
            if rest.nargs == 1 and not isinstance(given, str):
                opts[rest.name] = word
                del opts[self.name]
            elif rest.nargs != 1:
                opts[rest.name] = (word, *(given if isinstance(given, tuple) else ()))
                del opts[self.name]
        return super().consume_value(ctx, opts)

    def _next(self, ctx: click.Context) -> Optional[click.Argument]:
        """Return the verb's other argument; None without one."""
        return next((each for each in ctx.command.params if isinstance(each, click.Argument) and each != self), None)


def is_file(word: str) -> bool:
    """Return whether a word of the command line means a file, and not a task, a host or a folder."""
    return word.endswith((*YAML, ".py")) or Path(word).is_file()


# A file named without its verb, or a job instead of its hosts file.
PYTHON_FILE = """\
FILE: expected a hosts file, found the Python file {file}
for a job, type `launch {verb} {here}`, once that file has the lines
  job: {name}
  cluster: {{ps: [localhost], worker: [localhost, localhost]}}
for a script that trains by itself, type `launch run -H localhost -- python {file}`"""

WRITE_FILE = "name a file, or write a first job with `launch init NAME`"
NAME_FILE = "name the run's file, or any file with the same hosts: `launch runs FILE` lists every run there"


def refuse_other_files(verb: str, file: str) -> None:
    """Refuse a FILE that is Python code, and a missing FILE that the user has not named.

    Raises:
      UsageError: FILE is such a file; the text has the command to type instead.
    """
    path = Path(file)
    if path.suffix == ".py":
        here = shlex.quote(str(path.with_name(HERE)))
        raise UsageError(PYTHON_FILE.format(file=shlex.quote(file), verb=verb, here=here, name=path.name))
    if file == HERE and not path.exists():
        raise UsageError(
            f"FILE: expected a hosts file, or {HERE} in this folder, found neither; "
            f"{WRITE_FILE if verb in BEFORE_A_RUN else NAME_FILE}"
        )


def shell_words(flag: str, text: str) -> List[str]:
    """Return the words of ``text``, a command that is the value of ``flag``.

    Raises:
      UsageError: the text is not a valid command of a shell.
    """
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{flag}: expected words as in a shell, found {text!r}: {error}") from None


def complete_task(ctx: click.Context, param: click.Parameter, incomplete: str) -> List[str]:
    """Return the tasks, roles and hosts of the hosts file that is named earlier on the command line.

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
    """Return each key with an equals sign, such as ``train.steps=``, except for the keys in an item of a role."""
    return [f"{key}=" for key in keys() if key.startswith(incomplete) and not key.startswith("entry.")]


TASKS = click.argument("patterns", metavar="[TASK]...", nargs=-1, shell_complete=complete_task)
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout and nothing else.")
OF_RUN = click.option("--run", metavar="NAME", help="Use this run, not the newest; `launch runs` lists the names.")
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
    click.argument(
        "file", cls=HostsFile, metavar="[FILE]", default=HERE, type=click.Path(), shell_complete=complete_hosts_file
    ),
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
    """Add the argument FILE and its options to ``verb``, which gets them as its first argument: a ``Target``."""

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
        refuse_other_files(str(click.get_current_context().info_name), file)
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
