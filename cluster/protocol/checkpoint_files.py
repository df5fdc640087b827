"""List and remove the files of checkpoints in a folder, without TensorFlow.

A checkpoint of step 800 is ``model-800.index`` and some ``model-800.data-…``, one for each piece. The chief first
writes all files in a folder ``model-800.partial``, and renames the index last. So a checkpoint with an index is
complete. A process that is killed at any moment leaves at most that folder and files without an index.
"""

import contextlib
import hashlib
import os
import re
import shutil
from pathlib import Path
from typing import AbstractSet, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

LIST = "checkpoint"  # names the newest checkpoint for other programs; this project only writes the file
ASIDE = ".unreadable"
BEST = "best.json"  # the record of the best checkpoint
OWNER = "owner.json"  # the note of the chief that writes into the folder
OURS = "model"  # the name of our checkpoints, before the dash and the step
ROWS = f"{OURS}.rows"  # the folder with links from which the chief continues its next delta
PARTIAL = ".partial"  # follows a checkpoint's name: the folder in which the checkpoint is written
_PARTIAL_LIST = f".{LIST}{PARTIAL}"

NO_VERSION = "0"  # of a model that has no values yet
VERSION = re.compile(r"0|\d+-[0-9a-f]{8}")
_PART = r"-(\d+)\.(index|data-\d+-of-\d+)"
_ANY_FILE = re.compile(rf"[^/]+{_PART}")
_OUR_FILE = re.compile(rf"{OURS}{_PART}(\.tempstate\d+)?")
_OUR_FOLDER = re.compile(rf"{OURS}-\d+{re.escape(PARTIAL)}")


class StoredCheckpoint(NamedTuple):
    """One checkpoint; ``path`` is its prefix, as TensorFlow names it."""

    step: int
    path: str


def list_checkpoints(folder: Path) -> List[StoredCheckpoint]:
    """Return the checkpoints in a folder, newest first, readable or not.

    Raises:
      OSError: the folder exists and cannot be read.
    """
    try:
        names = os.listdir(str(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted((StoredCheckpoint(step, str(folder / prefix)) for step, prefix in indexed(names)), reverse=True)


def indexed(names: Iterable[str]) -> Iterator[Tuple[int, str]]:
    """Yield step and prefix of each checkpoint whose index is among ``names``, the names of files.

    The checkpoints may be ours or another program's.
    """
    for name in names:
        match = _ANY_FILE.fullmatch(name)
        if match and match.group(2) == "index":
            yield int(match.group(1)), name[: -len(".index")]


def version_of(path: str) -> str:
    """Return the version of the checkpoint at ``path``, such as ``800-1f3a9c0d``: its step, and a hash of its index.

    The index has the checksums of all values. So two checkpoints of one step have the same version only if they have
    the same values. Raises OSError.
    """
    step = os.path.basename(path).rpartition("-")[2]
    digest = hashlib.sha256(Path(f"{path}.index").read_bytes()).hexdigest()[:8]
    return f"{step if step.isdecimal() else '1'}-{digest}"


def delta_name(since: str, version: str) -> str:
    """Return the name of the file that makes a served model of the version ``since`` one of ``version``."""
    return f"{since}..{version}.npz"


def belongs_to_one(name: str) -> bool:
    """Return whether the file ``name`` belongs to a checkpoint, ours or another program's."""
    return _ANY_FILE.fullmatch(name) is not None


def write_list(folder: Path, names: Sequence[str]) -> None:
    """Write the checkpoint list for other programs: ``names`` of checkpoints in ``folder``, newest last.

    Raises OSError.
    """
    # Not by atomic_file, which writes in place on a full disk: another program might read half a list.
    lines = [f'model_checkpoint_path: "{names[-1]}"', *(f'all_model_checkpoint_paths: "{name}"' for name in names)]
    partial = folder / _PARTIAL_LIST
    partial.write_text("\n".join(lines) + "\n")
    os.replace(str(partial), str(folder / LIST))


def make_durable(path: str) -> None:
    """Sync a checkpoint to disk, so that the checkpoint survives a loss of power. Raises OSError."""
    for file in [*_files(path), Path(path).parent]:
        handle = os.open(str(file), os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def prune(folder: Path, newest: StoredCheckpoint, keep: int, spared: Optional[int] = None) -> List[StoredCheckpoint]:
    """Remove our own checkpoints up to ``newest``, except the ``keep`` newest ones, and return the remaining ones.

    With a ``keep`` below 1 the function removes nothing, as in TensorFlow. The checkpoint of the step ``spared`` also
    remains.

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

    Without its index, a checkpoint no longer counts as a checkpoint.
    """
    with contextlib.suppress(OSError):
        for file in sorted(_files(path), key=lambda file: ".index" not in file.name):
            file.unlink()


def remove_unfinished(folder: Path) -> None:
    """Remove the files that a chief left when it was killed while saving; never raise OSError."""
    with contextlib.suppress(OSError):
        names = set(os.listdir(str(folder)))
        for name in names:
            if name == ROWS or _OUR_FOLDER.fullmatch(name):
                shutil.rmtree(str(folder / name), ignore_errors=True)
            elif name == _PARTIAL_LIST or _is_unfinished(name, names):
                (folder / name).unlink()


def _is_unfinished(name: str, names: AbstractSet[str]) -> bool:
    """Return whether a file of ours is partly written, or belongs to a checkpoint without an index.

    ``names`` are the files of the folder. An index that was set aside counts as an index.
    """
    match, prefix = _OUR_FILE.fullmatch(name), name.split(".")[0]
    if match is None:
        return False
    return bool(match.group(3)) or not names & {f"{prefix}.index", f"{prefix}.index{ASIDE}"}


def set_aside(path: str) -> None:
    """Rename the index of an unreadable checkpoint, so that the checkpoint no longer counts.

    The files remain for inspection by a person.
    """
    with contextlib.suppress(OSError):
        os.replace(f"{path}.index", f"{path}.index{ASIDE}")


def _is_ours(each: StoredCheckpoint) -> bool:
    return bool(_OUR_FILE.fullmatch(os.path.basename(each.path) + ".index"))


def _files(path: str) -> Iterator[Path]:
    """Yield our files of a checkpoint, finished or not, except the files that were set aside."""
    name = os.path.basename(path)
    found = sorted(Path(path).parent.iterdir())
    return (file for file in found if file.name.startswith(f"{name}.") and _OUR_FILE.fullmatch(file.name))
