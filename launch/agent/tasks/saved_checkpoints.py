"""The checkpoints that programs under ``command:`` save on this host, found by TensorFlow's file ``checkpoint``.

The chief writes this file last, next to the data files. In a run on several hosts, a ps writes its data on its own
host, and no process can restore from the chief's files alone. So the chief's host checks whether it has all data files
of the newest checkpoint.

The agent searches the working folder and each folder named in the command. Files from before the agent's start do not
count: the launcher has copied them, or an earlier run has written them.

A folder may be on a file server that hangs. So a thread searches, and the agent uses the result of the last search.
"""

import os
import re
import threading
import time
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Mapping, Optional

from cluster.protocol.checkpoint_files import LIST
from cluster.protocol.outcome import WORK
from cluster.protocol.shared_files import open_to_read
from cluster.task import TRAINERS
from launch.agent.text import without_controls
from launch.agent.wire.run_request import TaskRequest

DEEPEST, MOST_FOLDERS = 3, 200  # levels below the working folder, and folders that a look opens
MOST_BYTES, LONGEST, MOST_FOUND = 1 << 16, 200, 8  # of a file, of a path in a message, and of paths
_NEWEST = re.compile(r'^model_checkpoint_path: "(.*)"$', re.MULTILINE)
_ELSEWHERE = re.compile(r"[\w+.-]+://")  # a file system that only TensorFlow reads
_DATA = re.compile(r"\.data-\d+-of-(\d+)")


class SavedCheckpoints:
    """A search for the newest checkpoints of this host's programs.

    Args:
      tasks: the tasks of this host, with the host's own paths.
      mask: hides secrets in a text.
    """

    def __init__(self, tasks: Mapping[str, TaskRequest], mask: Callable[[str], str] = str):
        self._since, self._mask = time.time(), mask
        self._newest: Dict[str, Dict[str, str]] = {}
        self._looking: Optional[threading.Thread] = None
        self._tasks = {
            name: task
            for name, task in tasks.items()
            if task.role in TRAINERS and os.path.basename(task.folder) == WORK  # a job has its own checkpoints
        }

    def __contains__(self, name: str) -> bool:
        return name in self._tasks

    def newest(self, wait_s: float = 0.0) -> Dict[str, Dict[str, str]]:
        """Return the result of the last completed search; start the next search if none is running.

        The method waits at most ``wait_s`` for a running search, and then at most ``wait_s`` for the next one.
        """
        if not self._tasks:
            return {}
        if self._looking is not None:
            self._looking.join(wait_s)
        if self._looking is None or not self._looking.is_alive():
            self._looking = threading.Thread(target=self._renew, daemon=True, name="saved checkpoints")
            self._looking.start()
        self._looking.join(wait_s)
        return self._newest

    def _renew(self) -> None:
        self._newest = self.look()

    def look(self) -> Dict[str, Dict[str, str]]:
        """Return {task: {path of a file ``checkpoint``: its newest checkpoint if that is incomplete here, else ""}}.

        A path below the working folder is relative to it. Tasks without such a file are left out.
        """
        below = {folder: list(_folders(folder)) for folder in {task.folder for task in self._tasks.values()}}
        found = {name: self._found(task, below[task.folder]) for name, task in self._tasks.items()}
        return {name: lists for name, lists in found.items() if lists}

    def _found(self, task: TaskRequest, below: List[str]) -> Dict[str, str]:
        named = (os.path.join(task.folder, word.split("=", 1)[-1]) for word in task.argv[1:])
        found: Dict[str, str] = {}
        for folder in dict.fromkeys([*below, *(os.path.normpath(each) for each in named)]):
            path = os.path.join(folder, LIST)
            missing = self._missing(path) if len(found) < MOST_FOUND else None
            if missing is not None:
                inside = folder == task.folder or folder.startswith(task.folder + os.sep)
                shown = os.path.relpath(path, task.folder) if inside else path
                found[self._printable(shown)] = self._printable(missing)
        return found

    def _printable(self, name: str) -> str:
        return self._mask(without_controls(name))[-LONGEST:]

    def _missing(self, path: str) -> Optional[str]:
        """Return the name of a list's newest checkpoint if its values are not here, "" if they are; None: no list."""
        try:
            with open_to_read(Path(path)) as file:
                if os.fstat(file.fileno()).st_mtime < self._since:
                    return None
                named = _NEWEST.search(file.read(MOST_BYTES).decode(errors="replace"))
        except (OSError, ValueError):
            return None
        if named is None or _ELSEWHERE.match(named[1]):
            return None
        prefix = os.path.join(os.path.dirname(path), named[1])
        return "" if _is_whole(prefix) else os.path.basename(prefix)


def _folders(top: str) -> Iterator[str]:
    """Yield a folder and those below it, the upper ones first, at most ``MOST_FOLDERS``; links are not followed."""
    level = [top]
    count = 0
    for _ in range(DEEPEST + 1):
        following: List[str] = []
        for folder in level[: MOST_FOLDERS - count]:
            yield folder
            count += 1
            try:
                with os.scandir(folder) as entries:
                    following += sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
            except OSError:
                continue
        level = following


def _is_whole(prefix: str) -> bool:
    """Return whether the files of a checkpoint are here: an index with all its data, or one file as TensorFlow 0 had.

    A folder that cannot be read proves nothing.
    """
    folder, name = os.path.split(prefix)
    try:
        names = os.listdir(folder)
    except OSError:
        return True
    data = [_DATA.fullmatch(each[len(name) :]) for each in names if each.startswith(name)]
    counts = [int(match[1]) for match in data if match]
    return name in names or (f"{name}.index" in names and bool(counts) and len(counts) >= min(counts))
