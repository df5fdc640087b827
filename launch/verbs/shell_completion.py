"""The completions of the Tab key: hosts files, their tasks and hosts, keys.

Click itself completes flags.
"""

from pathlib import Path
from typing import List

import click
from click.shell_completion import CompletionItem

from cluster.errors import SpecError
from cluster.spec import load
from cluster.spec.schema import keys
from launch.verbs.bash_completion import paths

YAML = (".yaml", ".yml")


def hosts_files(ctx: click.Context, param: click.Parameter, incomplete: str) -> List[str]:
    """Return YAML files, and folders on the way to them."""
    return list(paths(incomplete, lambda path: path.suffix in YAML))


def host_lists(ctx: click.Context, param: click.Parameter, incomplete: str) -> List[CompletionItem]:
    """Return any file, and the second word of ``launch import tfjob``."""
    words = [CompletionItem("tfjob")] if "tfjob".startswith(incomplete) else []
    return [*words, CompletionItem(incomplete, type="file")]


def tasks(ctx: click.Context, param: click.Parameter, incomplete: str) -> List[str]:
    """Return the tasks, roles and hosts of the file that was named before.

    A file that cannot be read has none.
    """
    try:
        spec = load(Path(ctx.params["file"]), ctx.params.get("overrides") or ())
    except (SpecError, OSError, KeyError, TypeError):
        return []
    names = [task.name for task in spec.tasks]
    roles = [f"{role}:*" for role in dict.fromkeys(task.role for task in spec.tasks)]
    return [word for word in [*names, *roles, *spec.hosts] if word.startswith(incomplete)]


def overrides(ctx: click.Context, param: click.Parameter, incomplete: str) -> List[str]:
    """Return ``train.steps=``, for every key outside the items of a role."""
    return [f"{key}=" for key in keys() if key.startswith(incomplete) and not key.startswith("entry.")]
