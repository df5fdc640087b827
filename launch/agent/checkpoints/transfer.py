"""The transfer of a checkpoint between two hosts, over a stream whose two sides are authenticated.

    sender      {"step": 40, "files": [["model-40.index", 512, 1763719000000000000], …]}    name, bytes, time
    receiver    {"have": true}, if it has the files already, which ends the transfer; or {"have": false}
    sender      the bytes of each file, and then {"proof": their SHA-256}
    receiver    {"taken": 40}; or at any time {"error": reason}

Each of these lines is sealed, and so authenticates the bytes before the line (``sealed``).

A checkpoint of any size takes a few MiB of memory on each side. Threads outside the event loop read and write the disk.
Received files stay in a separate folder until all of them are complete, verified and on the disk.
"""

import asyncio
import hashlib
import json
import os
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Callable, Dict, List, NamedTuple, Tuple

from cluster.protocol.checkpoint_files import belongs_to_one, indexed
from cluster.protocol.shared_files import open_to_read
from launch.agent.checkpoints import stored
from launch.agent.errors import AgentError
from launch.agent.linux.open_files import allow_open_files
from launch.agent.protocol.sealed import Sealed

CHUNK = 1 << 20
LONGEST_LINE = 1 << 20  # bytes: a checkpoint may have thousands of files
STALL_S = 30.0  # without a byte, the other side counts as ended
FLUSH_S = 300.0  # for a disk to write all data
SPARE_BYTES = 64 << 20  # that a copy leaves free on a disk
OPEN_FILES = 8192  # a checkpoint may have hundreds, and several hosts may fetch at a time
PARTIAL = ".partial"


class CopyError(AgentError):
    """The error that a checkpoint did not arrive. The receiver removes the files it has received."""


class File(NamedTuple):
    """One file of a checkpoint; ``time`` is its modification time in ns."""

    name: str
    size: int
    time: int


async def send(streams: Sealed, checkpoint: stored.LocalCheckpoint, moved: Callable[[int], None]) -> None:
    """Send a checkpoint, and wait until the other side has stored it.

    Args:
      moved: called with the number of bytes that were just sent.

    Raises:
      CopyError: the checkpoint cannot be read, or the other side did not accept it.
    """
    try:
        with ExitStack() as closing:
            files = await _beside(_opened, checkpoint, closing)
            _tell(streams, {"step": checkpoint.step, "files": [told for told, _ in files]})
            if (await _hear(streams, STALL_S)).get("have"):
                return
            for told, file in files:
                await _send_file(streams, file, told.size, moved)
            await _hear(streams, FLUSH_S)
    except (OSError, ValueError, asyncio.TimeoutError) as error:
        raise CopyError(_in_words(error)) from error


async def receive(streams: Sealed, folder: Path, keep: int, moved: Callable[[int], None]) -> int:
    """Receive a checkpoint into ``folder``, keep only the newest ``keep`` checkpoints there, and return its step.

    Raises:
      CopyError: the checkpoint did not arrive, or cannot be stored.
    """
    try:
        header = await _hear(streams, STALL_S)
        files = [File(str(name), int(size), int(time)) for name, size, time in header["files"]]
        step = int(header["step"])
        have = await _beside(_has, folder, files)
        if not have:
            await _beside(_make_room, folder, files)
        _tell(streams, {"have": have})
        if not have:
            for told in files:
                await _receive_file(streams, folder / PARTIAL, told, moved)
            await asyncio.wait_for(_beside(_store, folder, files, keep), FLUSH_S)
            _tell(streams, {"taken": step})
        return step
    except (OSError, ValueError, KeyError, TypeError, asyncio.TimeoutError) as error:
        why = _in_words(error)
        _tell(streams, {"error": why})
        raise CopyError(why) from error
    finally:
        _clear(folder)  # without a thread, also when cancelled: only a few names to remove


# -- the stream


def _tell(streams: Sealed, values: Dict[str, Any]) -> None:
    streams.write(json.dumps(values).encode())


async def _hear(streams: Sealed, timeout_s: float) -> Dict[str, Any]:
    try:
        values = json.loads((await asyncio.wait_for(streams.read(LONGEST_LINE), timeout_s)).decode())
    except EOFError as error:
        raise CopyError(str(error)) from error
    if not isinstance(values, dict):
        raise ValueError("malformed message from the other side")
    if "error" in values:
        raise CopyError(f"the other side: {values['error']}")
    return values


async def _send_file(streams: Sealed, file: IO[bytes], size: int, moved: Callable[[int], None]) -> None:
    proof, left = hashlib.sha256(), size
    while left:
        data = await _beside(_read, file, min(CHUNK, left), proof)
        streams.writer.write(data)
        await asyncio.wait_for(streams.writer.drain(), STALL_S)
        left -= len(data)
        moved(len(data))
    _tell(streams, {"proof": proof.hexdigest()})


async def _receive_file(streams: Sealed, folder: Path, told: File, moved: Callable[[int], None]) -> None:
    proof, left = hashlib.sha256(), told.size
    with open(str(folder / told.name), "wb") as file:
        while left:
            data = await asyncio.wait_for(streams.reader.read(min(CHUNK, left)), STALL_S)
            if not data:
                raise CopyError(f"the connection broke {left} bytes before the end of {told.name}")
            await _beside(_write, file, data, proof)
            left -= len(data)
            moved(len(data))
        await asyncio.wait_for(_beside(_flush, file), FLUSH_S)
    os.utime(str(folder / told.name), ns=(told.time, told.time))
    if (await _hear(streams, STALL_S))["proof"] != proof.hexdigest():
        raise ValueError(f"{told.name} arrived damaged")


def _in_words(error: BaseException) -> str:
    if isinstance(error, asyncio.TimeoutError):
        return f"no data for {STALL_S:.0f} s"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return f"{error}" if isinstance(error, (OSError, ValueError)) else f"malformed message: {error!r}"


# -- the disk


async def _beside(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function that may wait for a disk, in a thread."""
    return await asyncio.get_event_loop().run_in_executor(None, function, *arguments)


def _opened(checkpoint: stored.LocalCheckpoint, closing: ExitStack) -> List[Tuple[File, IO[bytes]]]:
    """Open all files before the first is sent, since the chief may delete files meanwhile; return the files."""
    allow_open_files(OPEN_FILES)
    files: List[Tuple[File, IO[bytes]]] = []
    for path in checkpoint.files():
        file = closing.enter_context(open_to_read(path))
        found = os.fstat(file.fileno())
        files.append((File(path.name, found.st_size, found.st_mtime_ns), file))
    return files


def _read(file: IO[bytes], size: int, proof: Any) -> bytes:
    data = file.read(size)
    if not data:
        raise ValueError(f"{file.name} became shorter while it was sent")
    proof.update(data)
    return data


def _write(file: IO[bytes], data: bytes, proof: Any) -> None:
    file.write(data)
    proof.update(data)


def _flush(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _has(folder: Path, files: List[File]) -> bool:
    try:
        found = [os.stat(str(folder / told.name)) for told in files]
    except OSError:
        return False
    return [(each.st_size, each.st_mtime_ns) for each in found] == [(told.size, told.time) for told in files]


def _make_room(folder: Path, files: List[File]) -> None:
    """Create an empty folder for the arriving files, on a disk with enough space."""
    for told in files:
        if told.name != os.path.basename(told.name) or not belongs_to_one(told.name):
            raise ValueError(f"expected a checkpoint's file, found {told.name!r}")
    _clear(folder)
    (folder / PARTIAL).mkdir(mode=0o700, parents=True)
    size, free = sum(told.size for told in files), shutil.disk_usage(str(folder)).free
    if free < size + SPARE_BYTES:
        raise ValueError(f"{folder} has {free >> 20} MiB free, too little for a checkpoint of {size >> 20} MiB")


def _store(folder: Path, files: List[File], keep: int) -> None:
    """Turn the arrived files into a checkpoint, its index last.

    Files without an index are no checkpoint. An older checkpoint of the same name is removed first: it may have more or
    fewer files.
    """
    for step, prefix in indexed(told.name for told in files):
        stored.LocalCheckpoint(step, prefix, folder).remove()
    for told in sorted(files, key=lambda told: told.name.endswith(".index")):
        os.replace(str(folder / PARTIAL / told.name), str(folder / told.name))
    _clear(folder)
    stored.prune(folder, keep)
    stored.write_list(folder)


def _clear(folder: Path) -> None:
    shutil.rmtree(str(folder / PARTIAL), ignore_errors=True)
