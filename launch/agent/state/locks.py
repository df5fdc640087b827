"""The locks of a working folder: on the name of a live run on a host, and on the removal of past runs.

The first makes a name mean one run for all verbs. The second keeps a run while another is about to resume from it.
"""

import contextlib
import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any, Dict, Iterator, Optional

from launch.agent.errors import AgentError
from launch.agent.linux import file_lock
from launch.agent.state.run_folder import RunFolder, lock_path

REMOVAL = ".removal"
PATIENCE_S, LOOK_S = 10.0, 0.02  # the wait for a removal, which holds its lock for a moment


class NameTaken(AgentError):
    """Another run of this name is up on this host; the text names that run."""


@contextlib.contextmanager
def hold(folder: RunFolder, name: str, file: str) -> Iterator[None]:
    """Hold the lock on ``name``, the name of the run, on this host within the context.

    ``file`` is what a user types after a verb to name this run: ``launch down FILE``.

    Raises:
      NameTaken: another run holds the name.
      file_lock.NoLocks: the file system has no locks, or the lock cannot be created.
    """
    path = lock_path(folder.workdir, name, folder.host)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = file_lock.take(path)
    except file_lock.LockHeld as held:
        raise NameTaken(refusal(str(_holder_in(str(held)).get("run", "another run of this name")), file)) from None
    except OSError as error:
        raise file_lock.NoLocks(f"{path.parent}: expected a folder to write in, found: {error.strerror}") from error
    try:
        with contextlib.suppress(OSError):  # on a full disk the name is held all the same
            os.ftruncate(handle, 0)
            os.write(handle, json.dumps({"run": folder.run, "pid": os.getpid()}).encode())
        yield
    finally:
        path.unlink()
        os.close(handle)


@contextlib.contextmanager
def no_removal(workdir: Path) -> Iterator[None]:
    """Prevent the removal of past runs within the context, in which a run that may resume from a past run starts.

    Raises:
      file_lock.NoLocks: the file system has no locks.
    """
    handle, until = None, time.monotonic() + PATIENCE_S
    while handle is None and time.monotonic() < until:  # then continue without the lock: the removal hangs
        try:
            handle = file_lock.take(_removal_path(workdir), fcntl.LOCK_SH)
        except file_lock.LockHeld:
            time.sleep(LOOK_S)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


@contextlib.contextmanager
def removal(workdir: Path) -> Iterator[None]:
    """Prevent the start of any run as long as the context lasts, so that the caller can move past runs away.

    Raises:
      file_lock.LockHeld: a run is starting.
      file_lock.NoLocks: the file system has no locks.
    """
    handle = file_lock.take(_removal_path(workdir))
    try:
        yield
    finally:
        os.close(handle)


def _removal_path(workdir: Path) -> Path:
    """Return the file of this lock; the file stays outside the run folders, all of which may be removed."""
    workdir.mkdir(mode=0o700, parents=True, exist_ok=True)
    return workdir / REMOVAL


def refusal(run: str, file: str) -> str:
    """Return the reason why a second run of a name cannot start on a host."""
    return f"{run} is already up; see it with `launch status {file}`, end it with `launch down {file}`"


def last_holder(path: Path) -> Optional[str]:
    """Return the run that holds a lock, or that left the lock behind.

    ``path`` is the lock's file. The result is None where the file does not exist or names no run.
    """
    try:
        run: Optional[str] = _holder_in(path.read_text()).get("run")
    except (OSError, ValueError):
        return None
    return run


def lock_holder(workdir: Path, name: str, host: str) -> Optional[Dict[str, Any]]:
    """Return the holder of a run's name on this host as {run, pid}; None where no run holds the name."""
    content = file_lock.held_by(lock_path(workdir, name, host))
    return None if content is None else _holder_in(content)


def _holder_in(content: str) -> Dict[str, Any]:
    """Return the holder that a lock's file names; {} where a full disk or a power cut has left no whole text."""
    try:
        holder = json.loads(content)
    except ValueError:
        return {}
    return holder if isinstance(holder, dict) else {}
