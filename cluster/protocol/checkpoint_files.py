"""List and remove the files of checkpoints in a folder, without TensorFlow.

A checkpoint of step 800 is ``model-800.index`` and some ``model-800.data-…``, one for each piece. All are written
in a folder ``model-800.partial`` first, and the index gets its name last. So where there is an index the
checkpoint was written to its end, and a process that is killed at any moment leaves at most that folder and
files that no index belongs to.
"""

import contextlib
import os
import re
import shutil
from pathlib import Path
from typing import AbstractSet, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

LIST = "checkpoint"  # what other programs read to learn which is the newest; here it is only written
ASIDE = ".unreadable"
BEST = "best.json"  # the record of the best checkpoint
OURS = "model"  # what our own are called, before the dash and the step
ROWS = f"{OURS}.rows"  # the folder with links from which the chief's next delta goes on
PARTIAL = ".partial"  # after a checkpoint's name: the folder in which it is written
_PARTIAL_LIST = f".{LIST}{PARTIAL}"

_PART = r"-(\d+)\.(index|data-\d+-of-\d+)"
_ANY_FILE = re.compile(rf"[^/]+{_PART}")
_OUR_FILE = re.compile(rf"{OURS}{_PART}(\.tempstate\d+)?")
_OUR_FOLDER = re.compile(rf"{OURS}-\d+{re.escape(PARTIAL)}")


class StoredCheckpoint(NamedTuple):
    """One checkpoint; ``path`` is what TensorFlow calls its prefix."""

    step: int
    path: str


def list_checkpoints(folder: Path) -> List[StoredCheckpoint]:
    """Return the checkpoints in a folder, newest first, whether they can be read or not.

    Raises:
      OSError: the folder is there and cannot be read.
    """
    try:
        names = os.listdir(str(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted((StoredCheckpoint(step, str(folder / prefix)) for step, prefix in indexed(names)), reverse=True)


def indexed(names: Iterable[str]) -> Iterator[Tuple[int, str]]:
    """Yield step and prefix of each checkpoint whose index is among these file names.

    The checkpoints may be ours or another program's.
    """
    for name in names:
        match = _ANY_FILE.fullmatch(name)
        if match and match.group(2) == "index":
            yield int(match.group(1)), name[: -len(".index")]


def belongs_to_one(name: str) -> bool:
    """Return whether a file of this name belongs to a checkpoint, ours or another program's."""
    return _ANY_FILE.fullmatch(name) is not None


def write_list(folder: Path, names: Sequence[str]) -> None:
    """Write the checkpoint list for other programs: ``names`` in the folder, newest last. Raises OSError."""
    # Not by atomic_file: on a full disk that writes in place, and a program of others might read half a list.
    lines = [f'model_checkpoint_path: "{names[-1]}"', *(f'all_model_checkpoint_paths: "{name}"' for name in names)]
    partial = folder / _PARTIAL_LIST
    partial.write_text("\n".join(lines) + "\n")
    os.replace(str(partial), str(folder / LIST))


def make_durable(path: str) -> None:
    """Sync a checkpoint to disk, so that it survives a loss of power. Raises OSError."""
    for file in [*_files(path), Path(path).parent]:
        handle = os.open(str(file), os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def prune(folder: Path, newest: StoredCheckpoint, keep: int, spared: Optional[int] = None) -> List[StoredCheckpoint]:
    """Remove all but the ``keep`` newest of our own checkpoints up to ``newest``; return those that stay.

    ``keep`` is at least 1, or else nothing is removed, as TensorFlow has it. The checkpoint of the step ``spared``
    stays, too.

    Raises:
      OSError: the folder cannot be read.
    """
    ours = [each for each in list_checkpoints(folder) if each.step <= newest.step and _is_ours(each)]
    kept = [each for index, each in enumerate(ours) if index < keep or keep <= 0 or each.step == spared]
    for each in ours:
        if each not in kept:
            remove(each.path)
    return kept


def remove(path: str) -> None:
    """Remove the files of a checkpoint, its index first; never raise OSError.

    Without its index, no part of the checkpoint counts as one.
    """
    with contextlib.suppress(OSError):
        for file in sorted(_files(path), key=lambda file: ".index" not in file.name):
            file.unlink()


def remove_unfinished(folder: Path) -> None:
    """Remove the files that a chief killed while saving has left; never raise OSError."""
    with contextlib.suppress(OSError):
        names = set(os.listdir(str(folder)))
        for name in names:
            if name == ROWS or _OUR_FOLDER.fullmatch(name):
                shutil.rmtree(str(folder / name), ignore_errors=True)
            elif name == _PARTIAL_LIST or _is_unfinished(name, names):
                (folder / name).unlink()


def _is_unfinished(name: str, names: AbstractSet[str]) -> bool:
    """Return whether a file of ours is partly written, or its checkpoint has no index.

    ``names`` are the files of the folder. An index that was set aside counts as one.
    """
    match, prefix = _OUR_FILE.fullmatch(name), name.split(".")[0]
    if match is None:
        return False
    return bool(match.group(3)) or not names & {f"{prefix}.index", f"{prefix}.index{ASIDE}"}


def set_aside(path: str) -> None:
    """Rename the index of an unreadable checkpoint, so that the checkpoint no longer counts.

    The files stay, for a person to look at.
    """
    with contextlib.suppress(OSError):
        os.replace(f"{path}.index", f"{path}.index{ASIDE}")


def _is_ours(each: StoredCheckpoint) -> bool:
    return bool(_OUR_FILE.fullmatch(os.path.basename(each.path) + ".index"))


def _files(path: str) -> Iterator[Path]:
    """Return our files of a checkpoint, finished or not, without those set aside."""
    name = os.path.basename(path)
    found = sorted(Path(path).parent.iterdir())
    return (file for file in found if file.name.startswith(f"{name}.") and _OUR_FILE.fullmatch(file.name))
