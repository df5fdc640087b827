"""The load and the failures of GPUs while tasks run. The agent never waits for the driver, which may hang.

``look`` reads the driver's last answer and sends the next query. These are signs of a failed card:

    an Xid in the kernel's messages  the driver met an error after which only a reset, or a restart of the host, helps
    a card that the driver lost      the driver reports the loss, or no longer lists the card
    no answer for ``FAILED_S``       the driver hangs, so every card has failed

For the codes in ``XIDS``, NVIDIA's catalog of Xid errors asks for a reset or a restart. Codes of program errors, such
as 13, 31 and 43, leave a card usable; only the task fails. This user must be able to read the kernel's messages to see
codes.
"""

import re
import subprocess
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional

from launch.agent.gpus import nvidia_smi
from launch.agent.gpus.nvidia_smi import CardLost, card_of
from launch.agent.linux.kernel_log import KMSG, NewMessages

PATIENCE_S = nvidia_smi.ANSWER_S  # a hanging driver answers late or never
MIB = 1 << 20
_ASK_USE = nvidia_smi.question("gpu", "index", "utilization.gpu", "memory.used")


class Use(NamedTuple):
    """The load of one GPU; None for a value that the driver does not report.

    ``percent`` is the percentage of the recent time in which the GPU computed, and ``memory_bytes`` the memory in use.
    """

    percent: Optional[float]
    memory_bytes: Optional[int]


class _Question:
    """A repeated query to the driver, without a wait for the answer."""

    def __init__(self, argv: List[str], errors: int):
        self._argv, self._errors = argv, errors
        self._asked: Optional[subprocess.Popen[bytes]] = None
        self._asked_at = 0.0

    @property
    def is_open(self) -> bool:
        """Return whether the driver has yet to answer the last query."""
        return self._asked is not None and self._asked.poll() is None

    def is_late(self, now: float, patience_s: float) -> bool:
        """Return whether the last query has been without an answer for over ``patience_s``; if so, end the query."""
        if self._asked is None or not self.is_open or now - self._asked_at <= patience_s:
            return False
        self._asked.kill()
        return True

    def answer(self, now: float) -> Optional[str]:
        """Return the driver's answer to the last query, and send the query again; None while no answer has arrived."""
        if self.is_open:
            return None
        answer = None
        if self._asked is not None and self._asked.stdout is not None:
            with self._asked.stdout as output:
                answer = output.read().decode(errors="replace")
        self._asked_at = now
        try:
            self._asked = subprocess.Popen(
                self._argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._errors
            )
        except OSError:  # the host has no driver
            self._asked = None
        return answer


class GpuUse:
    """The load of every GPU of this host. Each ``look`` reads the driver's last answer and sends the next query."""

    def __init__(self) -> None:
        self._question = _Question(_ASK_USE, subprocess.DEVNULL)
        self._newest: Dict[int, Use] = {}

    def look(self, now: float) -> Dict[int, Use]:
        """Return {GPU index: its load}, from the driver's answer to an earlier call's query.

        The result is empty without a driver, or where the driver hangs.
        """
        if self._question.is_late(now, PATIENCE_S):
            self._newest = {}
            return self._newest
        answer = self._question.answer(now)
        if answer is not None:
            self._newest = read_use(answer)
        return self._newest


def read_use(answer: str) -> Dict[int, Use]:
    """Parse an answer of nvidia-smi into {GPU index: its load}.

    The answer has a line ``0, 87, 14541`` for each GPU: its index, its use in percent, and its used memory in MiB. An
    unknown value is ``[N/A]``.
    """
    rows = nvidia_smi.rows(answer)
    return {int(row[0]): _use(row) for row in rows if len(row) == 3 and row[0].isdigit()}


def _use(row: List[str]) -> Use:
    percent, mib = (int(text) if text.isdigit() else None for text in row[1:])
    return Use(percent, None if mib is None else mib * MIB)


LOOK_S = 15.0
FAILED_S = 60.0  # a driver under load may take many seconds
XIDS = {
    48: "double-bit error of its memory",
    64: "its memory could not be repaired",
    79: "it has fallen off the bus",
    95: "uncontained error of its memory",
    119: "its system processor does not answer",
    120: "error of its system processor",
    140: "unrecovered error of its memory",
}
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?(?P<card>[0-9A-Fa-f]+:\w\w:\w\w)\S*\): (?P<code>\d+)\b")
_ASK_CARDS = nvidia_smi.question("gpu", "index", "pci.bus_id")


class Failures:
    """The GPUs of this host that have failed. Each ``look`` reads the driver's last answer and sends the next query.

    Args:
      messages: the file of the kernel's messages.
    """

    def __init__(self, messages: Path = KMSG) -> None:
        self._messages = NewMessages(messages)
        self._question = _Question(_ASK_CARDS, subprocess.STDOUT)
        self._look_at = 0.0
        self._cards: Dict[str, int] = {}  # {card: index} in the first answer
        self._failed: Dict[int, str] = {}

    def due(self, now: float) -> bool:
        """Return whether to call ``look`` now. After True, the result is False for ``LOOK_S`` seconds."""
        if now < self._look_at:
            return False
        self._look_at = now + LOOK_S
        return True

    def look(self, now: float) -> Dict[int, str]:
        """Return {GPU index: first reason} for the GPUs that have failed since the first call."""
        for match in _XID.finditer(self._messages.read()):
            code = int(match.group("code"))
            if code in XIDS:
                self._fail(card_of(match.group("card")), f"Xid {code}, {XIDS[code]}")
        if self._question.is_late(now, FAILED_S):
            for card in self._cards:
                self._fail(card, f"the driver has not answered for {FAILED_S:.0f} s")
            return self._failed
        answer = self._question.answer(now)
        if answer is not None:
            self.judge(answer)
        return self._failed

    def judge(self, answer: str) -> None:
        """Record the cards that ``answer`` reports as lost, or that only the driver's first answer lists."""
        try:
            nvidia_smi.refuse_lost(answer)
        except CardLost as lost:
            self._fail(lost.card, f"the driver cannot reach it ({lost.why})")
            return
        rows = [row for row in nvidia_smi.rows(answer) if len(row) == 2 and row[0].isdigit()]
        found = {card_of(row[1]): int(row[0]) for row in rows}
        self._cards = self._cards or found
        for card in set(self._cards).difference(found) if found else ():
            self._fail(card, "the driver no longer lists it")

    def _fail(self, card: str, why: str) -> None:
        """Record that a card has failed, unless the driver has never listed the card."""
        if card in self._cards:
            self._failed.setdefault(self._cards[card], f"GPU {self._cards[card]} ({card}): {why}")
