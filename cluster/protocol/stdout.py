"""Print into a task's log, without ending the training when the log's disk is full."""

import errno
import io
import sys
from typing import Any

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class _Log(io.FileIO):
    """A file that discards output for which there is no room, instead of raising OSError."""

    def write(self, text: Any) -> int:
        try:
            return super().write(text) or 0
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            return len(text)


def outlive_full_disk() -> None:
    """Discard printed text while the disk under the log is full, instead of raising OSError."""
    sys.stdout, sys.stderr = _lenient(sys.stdout, 1), _lenient(sys.stderr, 2)


def _lenient(stream: Any, descriptor: int) -> io.TextIOWrapper:
    stream.flush()
    log = _Log(descriptor, "w", closefd=False)
    return io.TextIOWrapper(log, stream.encoding, stream.errors, line_buffering=True, write_through=True)
