"""The package files that the launcher has sent to this host, as ``WORKDIR/wheels/SHA256/NAME``.

A file is received once, for all environments whose lock file names it. Hosts that share a home folder share the files.
"""

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, List, Sequence

from launch.agent.errors import AgentError
from launch.agent.wire.verb_requests import WheelFile

CHUNK = 1 << 20
UNUSED_S = 30 * 24 * 3600.0  # the age without a request at which a file is removed


class Broken(AgentError):
    """The error that a file arrived damaged."""


class WheelStore:
    """The package files below ``workdir``."""

    def __init__(self, workdir: Path):
        self.path = workdir / "wheels"

    def missing(self, files: Sequence[WheelFile]) -> List[WheelFile]:
        """Return those of ``files`` that this host does not have."""
        return [file for file in files if not self._place(file).is_file()]

    def receive(self, file: WheelFile, read: Callable[[int], bytes]) -> None:
        """Receive one file with ``read``, a chunk at a time.

        Raises:
          EOFError: the sender has ended.
          Broken: the received bytes do not have the file's SHA-256.
        """
        self._place(file).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(prefix=".", dir=str(self._place(file).parent))
        try:
            with os.fdopen(handle, "wb") as output:
                digest = _copy(file.bytes, read, output.write)
            if digest != file.sha256:
                raise Broken(f"{file.name} arrived damaged; retry")
            os.replace(partial, str(self._place(file)))
        except BaseException:
            os.unlink(partial)
            raise

    def link(self, files: Sequence[WheelFile], folder: Path) -> None:
        """Link ``files`` into ``folder``, where pip finds them, and mark them as used now."""
        folder.mkdir(mode=0o700, exist_ok=True)
        for file in files:
            os.utime(str(self._place(file).parent))
            (folder / file.name).symlink_to(self._place(file))

    def remove_unused(self) -> None:
        """Remove the package files that no build has used for ``UNUSED_S``."""
        for place in self.path.iterdir() if self.path.is_dir() else ():
            with contextlib.suppress(FileNotFoundError):  # another host with the same home folder was faster
                if time.time() - place.stat().st_mtime > UNUSED_S:
                    shutil.rmtree(str(place), ignore_errors=True)

    def _place(self, file: WheelFile) -> Path:
        return self.path / file.sha256 / file.name


def _copy(length: int, read: Callable[[int], bytes], write: Callable[[bytes], Any]) -> str:
    """Copy ``length`` bytes; return their SHA-256."""
    seen = hashlib.sha256()
    while length:
        chunk = read(min(length, CHUNK))
        if not chunk:
            raise EOFError
        length -= len(chunk)
        seen.update(chunk)
        write(chunk)
    return seen.hexdigest()
