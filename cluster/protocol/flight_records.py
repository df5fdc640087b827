"""The newest spans of a task's time, such as its steps, in a file that survives a SIGKILL of the task.

The file is a header of ``HEADER`` bytes, and a fixed ring of ``SLOTS`` records of ``SLOT`` bytes. Record number n is in
slot n modulo ``SLOTS``, so a new record replaces the oldest. A record ends in a checksum over its other bytes. The
reader skips a record that is only partly written, and counts the record as ``torn``.

Times are from the host's monotonic clock, which all processes of a host share, and which never jumps. Each boot
starts the clock at 0. So a record contains a number for its boot, and the times of earlier boots cannot be compared.
"""

import json
import math
import struct
import time
import zlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import List, NamedTuple, Optional, Tuple, Union

from cluster.protocol.shared_files import make_record, read_at_most

FILE = "spans.ring"
HEADER, SLOTS, SLOT = 4096, 2048, 64
SIZE = HEADER + SLOTS * SLOT
# The phases of a heartbeat; a record has the index of its phase.
PHASES = ("starting", "first step", "step", "saving", "evaluating", "comparing", "ending")
CODES = {phase: code for code, phase in enumerate(PHASES)}
MOST_PS = 64  # the number of ps whose exchange the header contains
# number, begin, end, step; waited, longest wait, boot; ps, attempt; phase, whether it ended as it should.
_FIELDS = struct.Struct("<Qddq ffI hH BB6x")
_CHECK = struct.Struct("<I")
_UNKNOWN = math.nan  # as a time
_LARGEST_STEP = 2**53
_MOST_ATTEMPTS = 2**16 - 1  # the number that fits into a record
_NO_WAIT = (-1, _UNKNOWN)
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Wait(NamedTuple):
    """The longest wait for one ps in a step: the index of the ps, and the seconds of the wait."""

    ps: int
    seconds: float


class Span(NamedTuple):
    """One span of a task's time. Times are seconds of the host's monotonic clock.

    Attributes:
      number: the number of the span among all spans of the task, from 0.
      attempt: the number of the task's attempt.
      phase: one of ``PHASES``.
      step: the global step after the span.
      waited_s: seconds of the span in which the task waited for other workers; None if tasks do not wait for workers.
      longest: the longest wait for one ps in the span; None if the wait is not known.
      is_whole: False for a step that ended with an error, such as a lost server.
    """

    number: int
    attempt: int
    phase: str
    step: int
    began: float
    ended: float
    waited_s: Optional[float] = None
    longest: Optional[Wait] = None
    is_whole: bool = True


@dataclass(frozen=True)
class PsExchange:
    """The exchange of a worker with one ps in every step.

    ``pushes``: the number of gradients, or groups of gradients, that the worker sends to the ps; the ps returns as many
    groups of values. ``bytes``: the size of the variables on that ps. A variable of which a step uses only rows, such
    as an embedding table, counts as a whole or not at all.
    """

    pushes: int
    bytes: int


@dataclass(frozen=True)
class Header:
    """The facts about the task's newest process. ``ps`` has a ``PsExchange`` for each of the first ``MOST_PS`` ps."""

    attempt: int = 0
    ps: List[PsExchange] = field(default_factory=list)


class FlightRecords(NamedTuple):
    """The content of a file of records.

    Attributes:
      spans: the spans in the order in which they ended.
      header: None for a torn header.
      torn: the number of torn or impossible records.
      earlier: the number of records of another boot of the host.
    """

    spans: List[Span]
    header: Optional[Header]
    torn: int = 0
    earlier: int = 0


def boot_number() -> int:
    """Return a 32-bit number that identifies this boot of the host; 0 if the kernel reports no boot."""
    try:
        return zlib.crc32(_BOOT.read_bytes())
    except OSError:
        return 0


class Packer:
    """The packer of the records of one attempt; each call overwrites ``data``, of ``SLOT`` bytes, with one record.

    Each step calls the packer once, when the processor's caches contain little of this code. So the packer creates as
    few objects as possible.
    """

    def __init__(self, attempt: int):
        self.data = bytearray(SLOT)
        self._fields = memoryview(self.data)[: _FIELDS.size]
        self._attempt = min(attempt, _MOST_ATTEMPTS)
        self._boot = boot_number()

    def __call__(
        self,
        number: int,
        began: float,
        ended: float,
        step: int,
        waited_s: Optional[float],
        longest: Optional[Wait],
        code: int,
        is_whole: bool,
    ) -> None:
        """Pack the record of a span; see ``Span``. ``code`` is the code of its phase in ``CODES``."""
        ps, longest_s = longest or _NO_WAIT
        _FIELDS.pack_into(
            self.data, 0, number, began, ended, step, _UNKNOWN if waited_s is None else waited_s, longest_s, self._boot,
            ps, self._attempt, code, is_whole,
        )  # fmt: skip
        _CHECK.pack_into(self.data, _FIELDS.size, zlib.crc32(self._fields))


def packed_header(header: Header) -> bytes:
    """Return ``header`` as the first ``HEADER`` bytes of a file of records."""
    return json.dumps(asdict(header)).encode().ljust(HEADER)[:HEADER]


def read_records(path: Union[str, Path], boot: Optional[int] = None) -> FlightRecords:
    """Return the records in a file.

    Args:
      boot: the ``boot_number`` of the wanted records; None for the current boot.

    Raises:
      FileNotFoundError: the file does not exist.
      OSError: the file cannot be read, or is not a regular file.
      ValueError: the file does not have the size of a file of records.
    """
    data = read_at_most(Path(path), SIZE)
    if len(data) != SIZE:
        raise ValueError(f"{path}: expected {SIZE} bytes, found {len(data)}")
    return unpacked(data, boot_number() if boot is None else boot)


def unpacked(data: bytes, boot: int) -> FlightRecords:
    """Return the records in ``data``, the content of a file."""
    found: List[Span] = []
    torn = earlier = 0
    for slot in range(SLOTS):
        record = data[HEADER + slot * SLOT : HEADER + (slot + 1) * SLOT]
        if not any(record):
            continue
        span, of = _unpacked(record)
        if span is None or span.number % SLOTS != slot:
            torn += 1
        elif of != boot:
            earlier += 1
        else:
            found.append(span)
    return FlightRecords(sorted(found, key=lambda span: span.number), _header(data[:HEADER]), torn, earlier)


def _unpacked(record: bytes) -> Tuple[Optional[Span], int]:
    """Return the span and the boot of a record. The span is None for a torn or impossible record."""
    data = record[: _FIELDS.size]
    if _CHECK.unpack_from(record, _FIELDS.size)[0] != zlib.crc32(data):
        return None, 0
    number, began, ended, step, waited_s, longest_s, boot, ps, attempt, phase, whole = _FIELDS.unpack(data)
    possible = 0 <= began <= ended < math.inf and 0 <= step < _LARGEST_STEP and phase < len(PHASES)
    if not possible or math.inf in (waited_s, longest_s):
        return None, 0
    longest = Wait(ps, longest_s) if ps >= 0 and longest_s >= 0 else None
    waited = waited_s if waited_s >= 0 else None
    return Span(
        number=number,
        attempt=attempt,
        phase=PHASES[phase],
        step=step,
        began=began,
        ended=ended,
        waited_s=waited,
        longest=longest,
        is_whole=bool(whole),
    ), boot


def _header(data: bytes) -> Optional[Header]:
    try:
        values = json.loads(data.decode())
        exchanges = [make_record(each, PsExchange) for each in values.pop("ps")]
        return Header(attempt=int(values["attempt"]), ps=exchanges)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def clock_lead_s() -> float:
    """Return the time of day minus the time of the monotonic clock, in seconds."""
    return time.time() - time.monotonic()
