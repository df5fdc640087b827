"""All queries of ``nvidia-smi``, and the GPUs of this host with their state, from its answers and from bookings.

The health of a GPU is the number of memory errors that ECC cannot correct, and whether the hardware reduces its clocks.
A driver without one of the fields refuses the whole query, so a second query has fewer fields. For a card without ECC,
or an unknown value, the driver answers ``[N/A]``.
"""

import os
import re
import subprocess
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence

from launch.agent.errors import AgentError
from launch.agent.gpus.assignment import allotted, who_holds
from launch.agent.linux.processes import command_line
from launch.agent.wire.host_facts import Gpu, Gpus

ANSWER_S = 20.0
LONGEST = 100  # characters of a reason
REPAIR = "restart that host, or leave it out"
# Unable to determine the device handle for GPU 0000:CB:00.0: Unknown Error; also "for GPU1: 0000:CB:00.0: …"
_LOST = re.compile(
    r"Unable to determine the device handle for GPU(?:\d+:)? ?(?P<card>[0-9A-Fa-f]{4,8}:\w\w:\w\w\.\w): (?P<why>[^\n]*)"
)


class NoDriverAnswer(AgentError):
    """A driver that cannot answer, so that this host's GPUs are not known; the text has the remedy."""


class CardLost(NoDriverAnswer):
    """A card that the driver cannot reach any more; the driver then does not describe the other cards either."""

    def __init__(self, card: str, why: str):
        super().__init__(f"nvidia-smi: expected every GPU, found the one at {card} lost ({why}); {REPAIR}")
        self.card, self.why = card, why


class DriverHangs(NoDriverAnswer):
    """A driver that has not answered in time."""

    def __init__(self) -> None:
        super().__init__(f"nvidia-smi: expected an answer within {ANSWER_S:.0f} s, found none; try nvidia-smi there")


def question(about: str, *fields: str) -> List[str]:
    """Return the argv that queries ``about`` (``gpu``, ``compute-apps``) for these fields."""
    return ["nvidia-smi", f"--query-{about}={','.join(fields)}", "--format=csv,noheader,nounits"]


def ask(argv: List[str]) -> str:
    """Return the output of ``nvidia-smi``; "" without a driver, and where the program fails.

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
    """Raise CardLost where an answer reports a card that the driver cannot reach."""
    lost = _LOST.search(answer)
    if lost is not None:
        raise CardLost(card_of(lost.group("card")), " ".join(lost.group("why").split())[:LONGEST])


def card_of(address: str) -> str:
    """Return the name of a card by its address on the PCI bus: ``0000:3b:00`` of ``00000000:3B:00.0``."""
    domain, _, place = address.lower().split(".")[0].partition(":")
    return f"{domain[-4:]}:{place}"


def rows(answer: str) -> List[List[str]]:
    """Return the fields of every line; ``[N/A]`` is an unknown value."""
    return [line.split(", ") for line in answer.splitlines()]


def list_gpus() -> List[str]:
    """Return the UUIDs of this host's NVIDIA GPUs, by index; none without a driver. Raises NoDriverAnswer."""
    # GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5f3c…); the lines for parts of a divided GPU are indented
    return re.findall(r"^GPU \d+: .*\(UUID: ([^)]+)\)", ask(["nvidia-smi", "-L"]), re.MULTILINE)


_ERRORS, _SLOWED = "ecc.errors.uncorrected.volatile.total", "clocks_throttle_reasons.hw_slowdown"
ASK = question("gpu", "uuid", _ERRORS, _SLOWED)
ASK_LESS = question("gpu", "uuid", _ERRORS)


class Health(NamedTuple):
    """The health of one GPU; ``memory_errors`` is None where the GPU does not count errors."""

    memory_errors: Optional[int] = None
    slowed: bool = False


def health_of_all() -> Dict[str, Health]:
    """Return the health of each GPU by its UUID, as far as the driver reports it. Raises NoDriverAnswer."""
    return read_health(ask(ASK)) or read_health(ask(ASK_LESS))


def read_health(answer: str) -> Dict[str, Health]:
    """Parse lines ``GPU-5f3c…, 2, Active`` of an answer; a line may end after the errors."""
    known = [row for row in rows(answer) if len(row) >= 2]
    return {row[0]: Health(_error_count(row[1]), row[2:3] == ["Active"]) for row in known}


def _error_count(text: str) -> Optional[int]:
    return int(text) if text.isdigit() else None


UNKNOWN = "unknown (the driver does not answer)"  # used in place of an index
_GPUS = question("gpu", "driver_version", "uuid", "name")
_USERS = question("compute-apps", "gpu_uuid", "pid", "used_memory")


def driver_and_gpus() -> Gpus:
    """Return the driver's version, and the GPUs that tasks may use, in their order. Raises NoDriverAnswer."""
    found = rows(ask(_GPUS))
    users, health = (_memory(), health_of_all()) if found else ([], {})
    gpus = [
        _gpu(row[1:], [user for user in users if user["gpu"] == index], health.get(row[1], Health()))
        for index, row in enumerate(found)
    ]
    usable = allotted([gpu.uuid for gpu in gpus], os.environ)
    return Gpus(found[0][0] if found else None, [gpus[index] for index in usable])


def memory_of(pids: Iterable[int]) -> List[Dict[str, Any]]:
    """Return the GPU memory that these processes hold: {"gpu": index, "pid", "mib"}.

    The result is empty without a driver. ``mib`` is None where the driver does not report a number, as on GPUs that
    show graphics. Where the driver hangs, every process may hold memory of an unknown GPU.
    """
    wanted = set(pids)
    try:
        return [each for each in _memory() if each["pid"] in wanted] if wanted else []
    except CardLost:
        return []  # no process can use that card, and the driver does not describe the others
    except NoDriverAnswer:
        return [{"gpu": UNKNOWN, "pid": pid, "mib": None} for pid in sorted(wanted)]


def _memory() -> List[Dict[str, Any]]:
    """Return the GPU memory of every process of this host, as ``memory_of`` does."""
    held = rows(ask(_USERS))
    index = {identity: number for number, identity in enumerate(list_gpus())} if held else {}
    return [
        {"gpu": index.get(row[0], row[0]), "pid": int(row[1]), "mib": int(row[2]) if row[2].isdigit() else None}
        for row in held
        if len(row) == 3 and row[1].isdigit()
    ]


def _gpu(names: Sequence[str], users: Sequence[Mapping[str, Any]], health: Health) -> Gpu:
    """Return a GPU with its users: ``pid 42 (python train.py), 9000 MiB``."""
    processes = [f"pid {user['pid']} ({command_line(user['pid'])[:80]}), {user['mib'] or '?'} MiB" for user in users]
    return Gpu(names[0], names[1], who_holds(names[0]), processes, health.memory_errors, health.slowed)
