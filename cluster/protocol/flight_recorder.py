"""Record each span of a task's time, such as a step, when it ends: always, and within a few microseconds.

The recorder writes into the file with ``pwrite``, and keeps one record in memory. Written records belong to the kernel,
and survive the process. A file that is mapped into memory would cost a few microseconds less. But then a full disk, a
lost file server or a truncated file would end the task with SIGBUS. With ``pwrite`` they end only the recording.

All attempts of a task share the file, so the file has the last steps of a process that was killed. A process that waits
for its turn (``standby``) does not touch the file before its first span ends.
"""

import contextlib
import os
import time
from os import pwrite
from pathlib import Path
from typing import Callable, Optional, Sequence, Union

from cluster.protocol.flight_records import (
    CODES,
    FILE,
    HEADER,
    MOST_PS,
    SIZE,
    SLOT,
    SLOTS,
    Header,
    Packer,
    PsExchange,
    Wait,
    packed_header,
    read_records,
)

LEAST_S = 0.001  # of a pause between two steps; a shorter pause is not recorded as a span
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FlightRecorder:
    """The recorder of the spans of one attempt of a task; without a folder, it records nothing.

    Only the task's own thread may call the methods.
    """

    def __init__(
        self, folder: Optional[Union[str, Path]], attempt: int = 0, clock: Callable[[], float] = time.monotonic
    ):
        self._path = None if folder is None else Path(folder) / FILE
        self._attempt, self._clock = attempt, clock
        self._pack = Packer(attempt)
        self._exchanges: Sequence[PsExchange] = ()
        self._file: Optional[int] = None
        self._number = 0
        self._code, self._since = CODES["starting"], clock()

    def describe(self, exchanges: Sequence[PsExchange]) -> None:
        """Set what the task exchanges with each ps in a step; the header of the file contains it."""
        self._exchanges = exchanges[:MOST_PS]
        if self._file is not None:
            self._write_header(self._file)

    def begin(self, phase: str) -> None:
        """Begin a span of the phase ``phase``, and discard an unfinished span."""
        self._code, self._since = CODES[phase], self._clock()

    def end(
        self,
        step: int,
        waited_s: Optional[float] = None,
        longest: Optional[Wait] = None,
        is_whole: bool = True,
    ) -> None:
        """Record the current span, and begin the next one in the same phase. See ``Span``."""
        began, self._since = self._since, self._clock()
        if self._file is None:
            self._open()
            if self._file is None:
                return
        number = self._number
        self._number += 1
        self._pack(number, began, self._since, step, waited_s, longest, self._code, is_whole)
        try:
            pwrite(self._file, self._pack.data, HEADER + number % SLOTS * SLOT)
        except OSError as error:
            self._stop(error)

    def end_pause(self, step: int) -> None:
        """Record the current span if it lasted at least ``LEAST_S`` seconds."""
        if self._clock() - self._since >= LEAST_S:
            self.end(step)

    def _open(self) -> None:
        """Open the file, if the recorder has one, and continue after the records of earlier attempts."""
        path = self._path
        if path is None:
            return
        with contextlib.suppress(OSError, ValueError):
            spans = read_records(path).spans
            self._number = spans[-1].number + 1 if spans else 0
        try:
            self._file = os.open(str(path), _FLAGS, 0o600)
            if os.fstat(self._file).st_size != SIZE:
                os.ftruncate(self._file, 0)
            os.posix_fallocate(self._file, 0, SIZE)  # afterwards a full disk stops no record
        except OSError as error:
            self._stop(error)
            return
        self._write_header(self._file)

    def _write_header(self, file: int) -> None:
        try:
            pwrite(file, packed_header(Header(self._attempt, list(self._exchanges))), 0)
        except OSError as error:
            self._stop(error)

    def _stop(self, error: OSError) -> None:
        """End the recording permanently."""
        if self._file is not None:
            os.close(self._file)
        print(f"{self._path}: the times of steps are no longer recorded: {error.strerror}", flush=True)
        self._path = self._file = None
