"""The Python environments of a host, each identified by a hash of its lock files and its Python.

    WORKDIR/envs/HASH/          an environment, built in its final place, because an environment cannot be moved
    WORKDIR/envs/HASH/ready     written when the build is complete; touched whenever a run uses the environment
    WORKDIR/envs/HASH.lock      locked by all runs that use the environment, or by the process that builds or removes it
    WORKDIR/envs/HASH.log       the output of its last build

The kernel releases a lock when its holder's process ends. On a shared home folder, a lock works between hosts.
"""

import contextlib
import fcntl
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Iterator, List, Optional

from launch.agent.errors import AgentError
from launch.agent.linux import file_lock

UNUSED_S = 30 * 24 * 3600.0  # the age without a run at which an environment is removed
VERSION = "{}.{}".format(*sys.version_info[:2])


class Busy(AgentError):
    """The error that another process uses, builds or removes the environment."""


class Environment:
    """An environment below ``workdir``, which may not exist yet."""

    def __init__(self, workdir: Path, digest: str):
        self.path = workdir / "envs" / digest
        self.python = self.path / "bin" / "python"
        self.log = self.path.with_suffix(".log")
        self._ready = self.path / "ready"
        self._lock = self.path.with_suffix(".lock")

    def is_ready(self) -> bool:
        """Return whether the environment is complete, and was built with the Python version that this host has now."""
        try:
            built_on = json.loads(self._ready.read_text())["python"]
        except (OSError, ValueError):
            return False
        return bool(built_on == VERSION) and os.access(str(self.python), os.X_OK)

    def is_complete(self) -> bool:
        """Return whether the build was finished; the host's Python may have changed since."""
        return self._ready.exists()

    def seal(self) -> None:
        """Mark the environment as complete."""
        self._ready.write_text(json.dumps({"python": VERSION}))

    def touch(self) -> None:
        """Mark the environment as used now."""
        os.utime(str(self._ready))

    def unused_s(self) -> float:
        """Return the seconds since the environment was last used.

        For an incomplete environment, the age of its folder counts.
        """
        newest = self._ready if self._ready.exists() else self.path
        return time.time() - newest.stat().st_mtime

    def clear(self) -> None:
        """Remove the environment, starting with the file that marks it as complete."""
        with contextlib.suppress(FileNotFoundError):
            self._ready.unlink()
        shutil.rmtree(str(self.path), ignore_errors=True)

    def forget(self) -> None:
        """Remove the environment with its lock and log. The caller must hold the environment ``alone``."""
        self.clear()
        for path in (self.log, self._lock):
            with contextlib.suppress(FileNotFoundError):
                path.unlink()

    @contextlib.contextmanager
    def held(self, alone: bool) -> Iterator[None]:
        """Lock the environment until the end of the block: together with other processes, or ``alone``.

        Raises:
          Busy: another process holds the lock.
          file_lock.NoLocks: the file system has no locks.
        """
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            handle = file_lock.take(self._lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        except file_lock.LockHeld:
            raise Busy from None
        try:
            yield
        finally:
            os.close(handle)


def environments(workdir: Path) -> List[Environment]:
    """Return the environments on this host, complete or not."""
    folder = workdir / "envs"
    names = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    return [Environment(workdir, name) for name in names]


def remove_unused(workdir: Path, kept: Optional[str] = None) -> List[str]:
    """Remove environments that no run has used for ``UNUSED_S``; return their names.

    The environment named ``kept`` stays, and so do environments that a run uses now.
    """
    removed = []
    for environment in environments(workdir):
        if environment.path.name != kept and environment.unused_s() > UNUSED_S:
            with contextlib.suppress(Busy), environment.held(alone=True):
                environment.forget()
                removed.append(environment.path.name)
    return removed
