"""A run's name, held on its host while the run is up, so that the verbs about it mean one run."""

import contextlib
import json
import os
from pathlib import Path
from typing import Any, Dict, Iterator, Optional

from launch.agent.linux import file_lock
from launch.agent.state.run_folder import RunFolder, lock_path


class NameTaken(Exception):
    """Another run of this name is up on this host; the text says which."""


@contextlib.contextmanager
def hold(folder: RunFolder, name: str, file: str) -> Iterator[None]:
    """Holds the name of the run on this host; ``file`` is what verbs about a run of this name are asked with.

    Raises:
      NameTaken: another run holds it.
      file_lock.NoLocks: nobody can hold it.
    """
    path = lock_path(folder.workdir, name, folder.host)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        handle = file_lock.take(path)
    except file_lock.Held as held:
        run = json.loads(str(held) or "{}").get("run", "another run of this name")
        raise NameTaken(refusal(run, file)) from None
    try:
        os.ftruncate(handle, 0)
        os.write(handle, json.dumps({"run": folder.run, "pid": os.getpid()}).encode())
        yield
    finally:
        path.unlink()
        os.close(handle)


def refusal(run: str, file: str) -> str:
    """Why a second run of a name cannot start on a host."""
    return f"{run} is already up; see it with `launch status {file}`, end it with `launch down {file}`"


def last_holder(path: Path) -> Optional[str]:
    """The run that holds a lock, or left it behind; None where there is no lock, or nobody's name in it."""
    try:
        run: Optional[str] = json.loads(path.read_text() or "{}").get("run")
    except FileNotFoundError:
        return None
    return run


def lock_holder(workdir: Path, name: str, host: str) -> Optional[Dict[str, Any]]:
    """Who holds a run's name on this host: {run, pid}, or None."""
    said = file_lock.held_by(lock_path(workdir, name, host))
    holder: Optional[Dict[str, Any]] = None if said is None else json.loads(said or "{}")
    return holder
