"""Receive the files of an export from the chief's host: a SavedModel, or a delta."""

import base64
import binascii
import os
import tempfile
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO, Any, Callable, Dict, Iterator, Optional, Tuple

from cluster.protocol.checkpoint_files import VERSION, delta_name
from cluster.protocol.shared_files import new_folder
from launch.agent.wire.verb_requests import ExportRequest
from launch.errors import HostProblem, LaunchError, ProblemKind
from launch.fleet import Fleet
from launch.hosts.channel import Silence
from launch.hosts.conversation import Conversation
from launch.signals import Interrupts

QUIET_S = 120.0  # after this silence, the host counts as stuck
LOOK_S = 0.2


def fetch(fleet: Fleet, request: ExportRequest, folder: Path, note: Callable[[str], None]) -> Dict[str, Any]:
    """Fetch the SavedModel or the delta into the new folder ``folder``, completely or not at all.

    Returns:
      the host's last answer.

    Raises:
      HostProblem: the host is out of reach, or has nothing to send.
      LaunchError: the folder cannot be written.
      Interrupted: a signal came.
    """
    try:
        with new_folder(folder) as made, closing(fleet.contact(fleet.lead, "export", request)) as conversation:
            return _receive(conversation, made, fleet.interrupts, note)
    except OSError as error:
        raise LaunchError(f"cannot write {error.filename or folder}: {error.strerror}") from error


@contextmanager
def _there(folder: Path) -> Iterator[None]:
    """Make ``folder`` unless it exists; after an error, remove it again if it is empty. Raises OSError."""
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        if is_new:
            with suppress(OSError):
                folder.rmdir()
        raise


def fetch_delta(
    fleet: Fleet, request: ExportRequest, folder: Path, note: Callable[[str], None]
) -> Tuple[Dict[str, Any], Path]:
    """Fetch a delta into ``folder``, completely or not at all.

    Returns:
      The host's last answer, and the path of the delta; that of ``folder`` where nothing has changed.

    Raises: as ``fetch``.
    """
    try:
        with _there(folder), tempfile.TemporaryDirectory(prefix=".", dir=str(folder)) as own:
            found = fetch(fleet, request, Path(own, "delta"), note)
            version = found["done"]["version"]
            if version == request.since:
                note(f"{found['checkpoint']} is this version: nothing has changed")
                return found, folder
            name = delta_name(request.since or "", version)
            files = [path.name for path in Path(own, "delta").iterdir() if path.is_file()]
            if not VERSION.fullmatch(version) or files != [name]:
                raise HostProblem(fleet.lead, ProblemKind.NOISE, f"expected one file {name[:200]!r}")
            os.replace(os.path.join(own, "delta", name), str(folder / name))
            return found, folder / name
    except OSError as error:
        raise LaunchError(f"cannot write {error.filename or folder}: {error.strerror}") from error


def _receive(
    conversation: Conversation, folder: Path, interrupts: Interrupts, note: Callable[[str], None]
) -> Dict[str, Any]:
    """Receive files until the host has sent all of them. Raises HostProblem, OSError, Interrupted."""
    file: Optional[IO[bytes]] = None
    left, stage = 0, ""
    try:
        while True:
            answer = _next(conversation, interrupts)
            if ("data" in answer) != (left > 0):
                raise conversation.noise_problem("expected the rest of a file, found another answer")
            if "stage" in answer:
                if answer["stage"] != stage:
                    stage = answer["stage"]
                    note(f"{conversation.host}: {stage}")
            elif "file" in answer:
                if file is not None:
                    file.close()
                file, left = _open(conversation, folder, answer["file"]), answer["bytes"]
            elif file is not None and "data" in answer:
                left -= file.write(_decoded(conversation, answer["data"]))
            else:
                return answer
    finally:
        if file is not None:
            file.close()


def _next(conversation: Conversation, interrupts: Interrupts) -> Dict[str, Any]:
    until = time.monotonic() + QUIET_S
    while True:
        interrupts.check()
        try:
            answer = conversation.receive(LOOK_S)
        except Silence:
            if time.monotonic() >= until:
                silent = f"no answer for {QUIET_S:.0f} s while it exports"
                raise HostProblem(conversation.host, ProblemKind.SILENT, silent) from None
            continue
        if answer is None:
            raise conversation.end_problem()
        return answer


def _open(conversation: Conversation, folder: Path, name: str) -> IO[bytes]:
    """Open a file of the SavedModel or the delta inside ``folder``, whatever name the host has sent."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\0" in name:
        raise conversation.noise_problem(f"expected the name of a file in a SavedModel, found {name[:200]!r}")
    path = folder.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    return open(str(path), "xb")


def _decoded(conversation: Conversation, data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise conversation.noise_problem(f"expected base64, found {data[:80]!r}") from None
