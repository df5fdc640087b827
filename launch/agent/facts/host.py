"""The facts of this host that ``launch check`` and ``launch diagnose`` both collect, section by section."""

import os
import tempfile
import time
from pathlib import Path
from typing import Dict, Iterator, Union

from launch.agent.containers import runtimes
from launch.agent.environments.environment import Environment
from launch.agent.facts.side_by_side import Piece, Section
from launch.agent.gpus.state import driver_and_gpus
from launch.agent.linux import file_lock
from launch.agent.state.run_folder import expand
from launch.agent.tasks.python_probe import Versions
from launch.agent.wire.host_facts import Disk, FactsRequest, Failed
from launch.status.values import to_values

SAMPLE = b"\0" * 65536  # what is written to see whether a folder takes it
MARGIN_S = 1.0  # for the answers to be sent


def sections(request: FactsRequest, within_s: float) -> Dict[str, Section]:
    """Return the sections; their pieces are fields of ``HostFacts``, and each folder is a section of its own."""
    until = time.monotonic() + within_s - MARGIN_S

    def disk_of(folder: str) -> Section:
        return lambda: _disk(request, folder)

    return {
        "versions": lambda: _versions(request, until),
        "gpus": lambda: iter([("gpus", to_values(driver_and_gpus()))]),
        **{f"disk {folder}": disk_of(folder) for folder in request.folders},
    }


def _versions(request: FactsRequest, until: float) -> Iterator[Piece]:
    environment = Environment(expand(request.workdir), request.environment) if request.environment else None
    python = str(environment.python) if environment else request.python
    python = python if request.container is None else request.container.python
    modules = ("numpy", "tensorflow") if request.trial else ()
    try:
        container = runtimes.of_run(request.container, expand(request.workdir))
    except runtimes.Lacking:  # the section of the container has the reason
        return
    asked = Versions(python, request.env, modules, packages=not request.trial, container=container)
    ready = environment is None or environment.is_ready()
    answers = asked.answers(max(MARGIN_S, until - time.monotonic()))
    yield "versions", {"environment_ready": ready, **answers}


def _disk(request: FactsRequest, folder: str) -> Iterator[Piece]:
    yield "disks", {folder: to_values(disk(expand(folder), request.trial, request.trial and folder == request.workdir))}


def disk(folder: Path, trial: bool = False, with_locks: bool = False) -> Union[Disk, Failed]:
    """Return the room in a folder, or in its nearest existing parent; or what keeps it from use.

    Args:
      trial: whether a sample is written.
      with_locks: whether a file system without locks is of no use.
    """
    place = next((each for each in (folder, *folder.parents) if each.is_dir()), Path("/"))
    try:
        state = os.statvfs(str(place))
        if trial:
            _write_sample(place, with_locks)
    except file_lock.NoLocks as error:
        return Failed(str(error))
    except OSError as error:
        return Failed(os.strerror(error.errno or 0))
    return Disk(
        is_there=place == folder,
        writable=os.access(str(place), os.W_OK) and not state.f_flag & os.ST_RDONLY,
        bytes=state.f_blocks * state.f_frsize,
        free_bytes=state.f_bavail * state.f_frsize,
        inodes=state.f_files,
        free_inodes=state.f_favail,
    )


def _write_sample(place: Path, with_locks: bool) -> None:
    """Write a file that leaves no name. Raises OSError, and NoLocks."""
    with tempfile.TemporaryFile(dir=str(place)) as sample:
        sample.write(SAMPLE)
        sample.flush()
        os.fsync(sample.fileno())  # some file systems say only then that they are full
        if with_locks:
            file_lock.lock(sample.fileno(), place / "sample")
