"""Choose which variables and tables of a model a warm start gives values, and their names in the other checkpoint.

Nothing here reads a file but ``find``, which looks for the checkpoint.
"""

import difflib
import os
import socket
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Collection, Dict, List, Mapping, NamedTuple, Sequence

from cluster.errors import CheckpointError, TrainingError
from cluster.protocol.checkpoint_files import list_checkpoints
from cluster.task import WarmStart

_NEAREST = 3  # names in a message
_INDEX = ".index"


class Choice(NamedTuple):
    """The chosen variables and tables of a model, each with its name in the checkpoint."""

    variables: Dict[str, str]
    tables: Dict[str, str]


def choose(settings: WarmStart, variables: Collection[str], tables: Collection[str]) -> Choice:
    """Return what ``train.warm_start`` chooses among these names of a model.

    Raises:
      TrainingError: a name or pattern, or the beginning of a name, is none of the model's.
    """
    model = [*variables, *tables]
    for pattern in settings.only or ():
        if not any(fnmatchcase(name, pattern) for name in model):
            raise TrainingError(
                "train.warm_start.only: expected names or patterns of this model's variables and tables,"
                f" found {pattern!r}, which fits none; {_nearest(pattern, model, 'the model has')}"
            )
    chosen = [name for name in model if settings.only is None or any(fnmatchcase(name, each) for each in settings.only)]
    _refuse_unused(settings.rename, chosen)
    of = {name: renamed(name, settings.rename) for name in chosen}
    return Choice({name: of[name] for name in of if name in variables}, {n: of[n] for n in of if n in tables})


def renamed(name: str, rename: Mapping[str, str]) -> str:
    """Return the name in the checkpoint of a model's variable: the longest beginning that fits is replaced."""
    fitting = [each for each in rename if name.startswith(each)]
    longest = max(fitting, key=len) if fitting else ""
    return rename.get(longest, longest) + name[len(longest) :]


def _refuse_unused(rename: Mapping[str, str], chosen: Sequence[str]) -> None:
    for prefix in rename:
        if not any(name.startswith(prefix) for name in chosen):
            raise TrainingError(
                "train.warm_start.rename: expected beginnings of chosen variables and tables of this model,"
                f" found {prefix!r}, which begins none; {_nearest(prefix, chosen, 'chosen are')}"
            )


def lacking(name: str, there: str, known: Sequence[str], path: str) -> CheckpointError:
    """Return the error for a chosen variable or table that the checkpoint at ``path`` lacks.

    Args:
      there: its name in the checkpoint, which has the ``known`` names.
    """
    as_there = "" if name == there else f", here {name!r}"
    return CheckpointError(
        f"train.warm_start: expected {there!r}{as_there} in the checkpoint {path}, found none;"
        f" {_nearest(there, known, 'it has')}; correct rename, or leave it out with only"
    )


def _nearest(name: str, known: Sequence[str], has: str) -> str:
    """Return the nearest of the known names in words, or some of them where none is near."""
    nearest: List[str] = difflib.get_close_matches(name, sorted(known), _NEAREST, 0.4)
    if nearest:
        return f"the nearest are {', '.join(nearest)}" if len(nearest) > 1 else f"the nearest is {nearest[0]}"
    return f"{has} {', '.join(sorted(known)[:_NEAREST])}{', …' * (len(known) > _NEAREST)}" if known else f"{has} none"


def find(checkpoint: str) -> str:
    """Return the prefix of the checkpoint that ``train.warm_start.checkpoint`` names on this host.

    Args:
      checkpoint: a prefix, or a folder: then its newest.

    Raises:
      CheckpointError: there is none.
    """
    path = os.path.expanduser(checkpoint)
    if os.path.exists(path + _INDEX):
        return path
    if not os.path.isdir(path):
        raise _none_at(path, "another file" if os.path.exists(path) else "nothing")
    try:
        return _newest(path)
    except OSError as error:
        raise _none_at(path, f"a folder that cannot be read ({error.strerror})") from None


def _newest(folder: str) -> str:
    numbered = list_checkpoints(Path(folder))
    if numbered:
        return numbered[0].path
    others = sorted(name for name in os.listdir(folder) if name.endswith(_INDEX))
    if len(others) != 1:
        names = ", ".join(others[:_NEAREST])
        raise _none_at(folder, f"several without a step: {names}" if others else "a folder without a checkpoint")
    return os.path.join(folder, others[0][: -len(_INDEX)])


def _none_at(path: str, found: str) -> CheckpointError:
    return CheckpointError(
        f"train.warm_start.checkpoint: expected a checkpoint such as …/model-800, or a folder with checkpoints, at"
        f" {path} on {socket.gethostname()}, which runs the chief; found {found}; correct the path, or copy the"
        " checkpoint there"
    )
