"""The launcher's own code on this host, kept there for as long as a run of this agent may start a task of it.

All runs share the folder of this code, and a cleanup by age may remove files from the folder. So the agent has the
code in its memory, restores missing files, and keeps the run's files young.
"""

import contextlib
import json
import os
import time
from pathlib import Path
from typing import NamedTuple, Sequence

from launch.agent.linux.procfs import names_in
from launch.agent.state.log import say_once
from launch.agent.tasks import work_folder

LOOK_S = 3600.0
OLD_S = 24 * 3600.0  # Python compiles a file again whose time was changed: once a day at most


class _File(NamedTuple):
    mode: int
    content: bytes


class Shipped:
    """The code in ``folder``, read now.

    Args:
      own: the agent's folder of the run.
      tasks: those of its tasks.

    Raises:
      OSError, ValueError: it cannot be read.
    """

    def __init__(self, folder: Path, own: Path, tasks: Sequence[Path]):
        self._own, self._tasks, self._look_at = own, tasks, 0.0
        manifest = json.loads((folder / work_folder.MANIFEST).read_text())
        modes = {**{name: sent[0] for name, sent in manifest.items()}, work_folder.MANIFEST: 0o600}
        self._files = {f"{folder}/{name}": _File(mode, _read(f"{folder}/{name}")) for name, mode in modes.items()}

    def restore(self) -> None:
        """Write missing files again; log a failure once, which does not end the run."""
        for path, file in self._files.items():
            if not os.path.exists(path):
                try:
                    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
                    _write(Path(path), file)
                except OSError as error:
                    say_once(f"cannot put {path} back: {os.strerror(error.errno or 0)}")

    def look(self, now: float) -> None:
        """Restore the code and keep it and the run's files young, once an hour; ``now`` is the agent's clock."""
        if now >= self._look_at:
            self._look_at = now + LOOK_S
            self.restore()
            for path in (*self._files, *(f"{self._own}/{name}" for name in names_in(self._own))):
                _freshen(path)
            for task in self._tasks:
                work_folder.touch(task, time.time())


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _write(path: Path, file: _File) -> None:
    """Write a file that appears whole or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(str(partial), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, file.mode)
    with os.fdopen(handle, "wb") as written:
        written.write(file.content)
    os.replace(str(partial), str(path))


def _freshen(path: str) -> None:
    with contextlib.suppress(OSError):
        if time.time() - os.stat(path).st_mtime > OLD_S:
            os.utime(path)
