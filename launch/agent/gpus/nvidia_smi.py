"""The one way to ask ``nvidia-smi`` and to read its answers."""

import re
import subprocess
from typing import List

from launch.agent.errors import AgentError

ANSWER_S = 20.0
LONGEST = 100  # characters of a reason
REPAIR = "restart that host, or leave it out"
# Unable to determine the device handle for GPU 0000:CB:00.0: Unknown Error; also "for GPU1: 0000:CB:00.0: …"
_LOST = re.compile(
    r"Unable to determine the device handle for GPU(?:\d+:)? ?(?P<card>[0-9A-Fa-f]{4,8}:\w\w:\w\w\.\w): (?P<why>[^\n]*)"
)


class NoDriverAnswer(AgentError):
    """The driver cannot answer, so nothing is known of this host's GPUs; the text has the next step."""


class CardLost(NoDriverAnswer):
    """The driver cannot reach a card any more, which keeps it from describing the others."""

    def __init__(self, card: str, why: str):
        super().__init__(f"nvidia-smi: expected every GPU, found the one at {card} lost ({why}); {REPAIR}")
        self.card, self.why = card, why


class DriverHangs(NoDriverAnswer):
    """The driver has not answered in time."""

    def __init__(self) -> None:
        super().__init__(f"nvidia-smi: expected an answer within {ANSWER_S:.0f} s, found none; try nvidia-smi there")


def question(about: str, *fields: str) -> List[str]:
    """The argv that asks ``about`` (``gpu``, ``compute-apps``) for these fields."""
    return ["nvidia-smi", f"--query-{about}={','.join(fields)}", "--format=csv,noheader,nounits"]


def ask(argv: List[str]) -> str:
    """Return the output of ``nvidia-smi``; "" without a driver, and where it fails.

    Raises:
      DriverHangs: it gives no answer within ``ANSWER_S``.
      CardLost: it reports a card that it cannot reach.
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
    """The fields of every line; ``[N/A]`` stands for one that is not known."""
    return [line.split(", ") for line in answer.splitlines()]


def list_gpus() -> List[str]:
    """Return the UUIDs of this host's NVIDIA GPUs, by index; none where there is no driver. Raises DriverHangs."""
    # GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5f3c…); the parts of a divided GPU are indented below it
    return re.findall(r"^GPU \d+: .*\(UUID: ([^)]+)\)", ask(["nvidia-smi", "-L"]), re.MULTILINE)
