"""What a task prints goes into its log; a log on a full disk is no reason to end training."""

import errno
import io
import sys
from typing import Any

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class _Log(io.FileIO):
    """A file that takes what there is no room for, and forgets it."""

    def write(self, text: Any) -> int:
        try:
            return super().write(text) or 0
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            return len(text)


def outlive_full_disk() -> None:
    """From here on what is printed is lost while the disk under the log is full, instead of raising OSError."""
    sys.stdout, sys.stderr = _lenient(sys.stdout, 1), _lenient(sys.stderr, 2)


def _lenient(stream: Any, descriptor: int) -> io.TextIOWrapper:
    stream.flush()
    log = _Log(descriptor, "w", closefd=False)
    return io.TextIOWrapper(log, stream.encoding, stream.errors, line_buffering=True, write_through=True)
