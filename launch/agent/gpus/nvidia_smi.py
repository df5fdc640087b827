"""Queries of ``nvidia-smi``: the GPUs of this host, their health, and the memory that processes hold.

The health of a GPU is the number of memory errors that ECC cannot correct, and whether the hardware reduces its clocks.
A driver that does not know a field refuses the whole query, so a second query has fewer fields. For a card without ECC,
or an unknown value, the driver answers ``[N/A]``.
"""

import re
import subprocess
from typing import Any, Dict, Iterable, List, NamedTuple, Optional

from launch.agent.errors import AgentError

ANSWER_S = 20.0
LONGEST = 100  # characters of a reason
REPAIR = "restart that host, or leave it out of the run"
# Unable to determine the device handle for GPU 0000:CB:00.0: Unknown Error; also "for GPU1: 0000:CB:00.0: …"
_LOST = re.compile(
    r"Unable to determine the device handle for GPU(?:\d+:)? ?(?P<card>[0-9A-Fa-f]{4,8}:\w\w:\w\w\.\w): (?P<why>[^\n]*)"
)


class NoDriverAnswer(AgentError):
    """The error that the driver cannot list this host's GPUs. Its text has the remedy."""


class CardLost(NoDriverAnswer):
    """The error that the driver has lost contact with a card. The driver then does not list the other cards either."""

    def __init__(self, card: str, why: str):
        super().__init__(f"nvidia-smi: the driver has lost the GPU at {card} ({why}); {REPAIR}")
        self.card, self.why = card, why


class DriverHangs(NoDriverAnswer):
    """The error that the driver has not answered in time."""

    def __init__(self) -> None:
        super().__init__(f"nvidia-smi: expected an answer within {ANSWER_S:.0f} s, found none; run it on that host")


def question(about: str, *fields: str) -> List[str]:
    """Return the argv that queries ``about`` (``gpu``, ``compute-apps``) for ``fields``."""
    return ["nvidia-smi", f"--query-{about}={','.join(fields)}", "--format=csv,noheader,nounits"]


def ask(argv: List[str]) -> str:
    """Run ``nvidia-smi``, and return its output; "" without a driver, or if the program fails.

    Raises:
      DriverHangs: the driver does not answer within ``ANSWER_S``.
      CardLost: the driver reports a card that it cannot reach.
    """
    try:
        done = subprocess.run(argv, capture_output=True, timeout=ANSWER_S)
    except subprocess.TimeoutExpired:
        raise DriverHangs from None
    except OSError:
        return ""
    refuse_lost((done.stdout + done.stderr).decode(errors="replace"))
    return done.stdout.decode(errors="replace") if done.returncode == 0 else ""


def refuse_lost(answer: str) -> None:
    """Raise CardLost if an answer of ``nvidia-smi`` reports a card that the driver cannot reach."""
    lost = _LOST.search(answer)
    if lost is not None:
        raise CardLost(card_of(lost.group("card")), " ".join(lost.group("why").split())[:LONGEST])


def card_of(address: str) -> str:
    """Return the name of a card, from its address on the PCI bus: ``0000:3b:00`` for ``00000000:3B:00.0``."""
    domain, _, place = address.lower().split(".")[0].partition(":")
    return f"{domain[-4:]}:{place}"


def rows(answer: str) -> List[List[str]]:
    """Return the fields of every line of ``answer``; an unknown value is ``[N/A]``."""
    return [line.split(", ") for line in answer.splitlines()]


def list_gpus() -> List[str]:
    """Return the UUIDs of this host's NVIDIA GPUs, by index; [] without a driver. Raises NoDriverAnswer."""
    # GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5f3c…); the lines for parts of a divided GPU are indented
    return re.findall(r"^GPU \d+: .*\(UUID: ([^)]+)\)", ask(["nvidia-smi", "-L"]), re.MULTILINE)


_ERRORS, _SLOWED = "ecc.errors.uncorrected.volatile.total", "clocks_throttle_reasons.hw_slowdown"
ASK = question("gpu", "uuid", _ERRORS, _SLOWED)
ASK_LESS = question("gpu", "uuid", _ERRORS)


class Health(NamedTuple):
    """The health of one GPU.

    Attributes:
      memory_errors: the errors that ECC could not correct; None where the GPU does not count errors.
      slowed: whether the hardware reduces the GPU's clocks.
    """

    memory_errors: Optional[int] = None
    slowed: bool = False


def health_of_all() -> Dict[str, Health]:
    """Return {UUID: health} of each GPU, as far as the driver reports it. Raises NoDriverAnswer."""
    return read_health(ask(ASK)) or read_health(ask(ASK_LESS))


def read_health(answer: str) -> Dict[str, Health]:
    """Parse an answer of nvidia-smi, with lines such as ``GPU-5f3c…, 2, Active``, into {UUID: health}.

    A line has the UUID, the number of errors and, except in the smaller query, whether the clocks are reduced.
    """
    known = [row for row in rows(answer) if len(row) >= 2]
    return {row[0]: Health(_error_count(row[1]), row[2:3] == ["Active"]) for row in known}


def _error_count(text: str) -> Optional[int]:
    return int(text) if text.isdigit() else None


UNKNOWN = "unknown (the driver does not answer)"  # used in place of an index
_USERS = question("compute-apps", "gpu_uuid", "pid", "used_memory")


def memory_of(pids: Iterable[int]) -> List[Dict[str, Any]]:
    """Return the GPU memory that these processes hold, as a list of {"gpu": index, "pid", "mib"}.

    The result is empty without a driver. ``mib`` is None where the driver does not report a number, as on GPUs that
    show graphics. If the driver does not answer, the result has every process, with ``UNKNOWN`` as its GPU, because the
    process may hold memory of any GPU.
    """
    wanted = set(pids)
    try:
        return [each for each in memory() if each["pid"] in wanted] if wanted else []
    except CardLost:
        return []  # no process can use that card, and the driver does not describe the others
    except NoDriverAnswer:
        return [{"gpu": UNKNOWN, "pid": pid, "mib": None} for pid in sorted(wanted)]


def memory() -> List[Dict[str, Any]]:
    """Return the GPU memory of every process of this host, in the form of ``memory_of``. Raises NoDriverAnswer."""
    held = rows(ask(_USERS))
    index = {identity: number for number, identity in enumerate(list_gpus())} if held else {}
    return [
        {"gpu": index.get(row[0], row[0]), "pid": int(row[1]), "mib": int(row[2]) if row[2].isdigit() else None}
        for row in held
        if len(row) == 3 and row[1].isdigit()
    ]
