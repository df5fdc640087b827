"""The use of this host's GPUs and of their memory, asked of ``nvidia-smi`` without waiting for the answer."""

import subprocess
from typing import Dict, List, NamedTuple, Optional

from launch.agent.gpus import nvidia_smi

PATIENCE_S = nvidia_smi.ANSWER_S  # a driver that hangs answers later or never
MIB = 1 << 20
_ASK = nvidia_smi.question("gpu", "index", "utilization.gpu", "memory.used")


class Use(NamedTuple):
    """The use of one GPU; None for a value that the driver does not report.

    ``percent`` is the percentage of the recent time in which the GPU computed, and ``memory_bytes`` the memory in use.
    """

    percent: Optional[float]
    memory_bytes: Optional[int]


class GpuUse:
    """The use of every GPU of this host. Each look takes the last answer and asks for the next."""

    def __init__(self) -> None:
        self._asked: Optional[subprocess.Popen[bytes]] = None
        self._asked_at = 0.0
        self._newest: Dict[int, Use] = {}

    def look(self, now: float) -> Dict[int, Use]:
        """Return {index: use}, as it was at the look before.

        The result is empty where there is no driver, or the driver hangs.
        """
        if self._asked is not None and self._asked.poll() is None:
            if now - self._asked_at > PATIENCE_S:
                self._asked.kill()
                self._newest = {}
            return self._newest
        if self._asked is not None and self._asked.stdout is not None:
            with self._asked.stdout as answer:
                self._newest = read(answer.read().decode(errors="replace"))
        self._ask(now)
        return self._newest

    def _ask(self, now: float) -> None:
        self._asked_at = now
        try:
            self._asked = subprocess.Popen(
                _ASK, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except OSError:
            self._asked = None


def read(answer: str) -> Dict[int, Use]:
    """Parse an answer of nvidia-smi into {index: use}.

    The answer has a line ``0, 87, 14541`` for each GPU, in percent and MiB, or ``[N/A]``.
    """
    rows = nvidia_smi.rows(answer)
    return {int(row[0]): _use(row) for row in rows if len(row) == 3 and row[0].isdigit()}


def _use(row: List[str]) -> Use:
    percent, mib = (int(text) if text.isdigit() else None for text in row[1:])
    return Use(percent, None if mib is None else mib * MIB)
