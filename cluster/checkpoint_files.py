"""The files of checkpoints in a folder: which there are, and which go.

A checkpoint of step 800 is ``model-800.index`` and ``model-800.data-…``. TensorFlow writes both under other
names first, and renames the index last. So where there is an index the checkpoint was written to its
end, and a process that is killed at any moment leaves at most files that no index belongs to.
"""

import contextlib
import os
import re
from pathlib import Path
from typing import Iterator, List, NamedTuple

LIST = "checkpoint"  # what other programs read to learn which is the newest; here it is only written
ASIDE = ".unreadable"
_INDEX = re.compile(r".+-(\d+)\.index")
_OURS = re.compile(r"model-(\d+)\.(index|data-\d+-of-\d+)(\.tempstate\d+)?")


class Held(NamedTuple):
    """One checkpoint; ``path`` is what TensorFlow calls its prefix."""

    step: int
    path: str


def held(folder: Path) -> List[Held]:
    """The checkpoints in a folder, newest first, whether they can be read or not.

    Raises:
      OSError: the folder is there and cannot be read.
    """
    try:
        names = os.listdir(str(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    found = [(_INDEX.fullmatch(name), name) for name in names]
    steps = [Held(int(match.group(1)), str(folder / name[: -len(".index")])) for match, name in found if match]
    return sorted(steps, reverse=True)


def write_list(folder: Path, kept: List[Held]) -> None:
    """Tells other programs which checkpoints there are, ``kept`` newest first. Raises OSError."""
    names = [os.path.basename(each.path) for each in kept]
    lines = [f'model_checkpoint_path: "{names[0]}"', *(f'all_model_checkpoint_paths: "{name}"' for name in names[::-1])]
    partial = folder / f".{LIST}.partial"
    partial.write_text("\n".join(lines) + "\n")
    os.replace(str(partial), str(folder / LIST))


def make_durable(path: str) -> None:
    """Returns when a checkpoint would survive a loss of power. Raises OSError."""
    for file in [*_files(path), Path(path).parent]:
        handle = os.open(str(file), os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def prune(folder: Path, newest: Held, keep: int) -> List[Held]:
    """Removes all but the ``keep`` newest of our own checkpoints up to ``newest``; returns those that stay.

    ``keep`` is at least 1, or else nothing is removed, as TensorFlow has it.

    Raises:
      OSError: the folder cannot be read.
    """
    ours = [each for each in held(folder) if each.step <= newest.step and _is_ours(each)]
    kept = ours[:keep] if keep > 0 else ours
    for each in ours[len(kept) :]:
        remove(each.path)
    return kept


def remove(path: str) -> None:
    """Removes what there is of a checkpoint, its index first, so that no half of it counts; never raises OSError."""
    with contextlib.suppress(OSError):
        for file in sorted(_files(path), key=lambda file: ".index" not in file.name):
            file.unlink()


def remove_unfinished(folder: Path) -> None:
    """Removes what a chief that was killed while it saved has left; never raises OSError."""
    with contextlib.suppress(OSError):
        names = set(os.listdir(str(folder)))
        for name in names:
            match = _OURS.fullmatch(name)
            prefix = name.split(".")[0]
            if (match and not names & {f"{prefix}.index", f"{prefix}.index{ASIDE}"}) or (match and match.group(3)):
                (folder / name).unlink()


def set_aside(path: str) -> None:
    """A checkpoint that cannot be read counts no more; its files stay, for a person to look at."""
    with contextlib.suppress(OSError):
        os.replace(f"{path}.index", f"{path}.index{ASIDE}")


def _is_ours(each: Held) -> bool:
    return bool(_OURS.fullmatch(os.path.basename(each.path) + ".index"))


def _files(path: str) -> Iterator[Path]:
    """What there is of a checkpoint, finished or not; nothing of what was set aside."""
    name = os.path.basename(path)
    found = sorted(Path(path).parent.iterdir())
    return (file for file in found if file.name.startswith(f"{name}.") and _OURS.fullmatch(file.name))
