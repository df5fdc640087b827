"""The progress of many hosts with one piece of work; hosts at the same stage are folded into ranges."""

import time
from collections import Counter
from threading import Lock
from typing import Callable, Dict, List, Sequence, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from launch.view.console import fold

EVERY_S = 2.0  # between two lines, outside a terminal
MOST_STAGES = 4  # in one line


class HostProgress:
    """The progress of hosts, printed in lines: ``12 of 64 ready; gpu[03,05] fetching numpy``.

    Any thread may report the progress of a host.

    Args:
      output: the stream of the lines; on a terminal, one line changes in place.
    """

    def __init__(self, hosts: Sequence[str], output: TextIO, now: Callable[[], float] = time.monotonic):
        self._total, self._now = len(hosts), now
        self._stages: Dict[str, str] = {}
        self._ready = self._failed = 0
        self._output, self._lock = output, Lock()
        self._began = now()
        self._said_at = self._began
        self._said = ""
        self._live = Live(console=Console(file=output), refresh_per_second=4, transient=True)

    def __enter__(self) -> "HostProgress":
        if self._output.isatty():
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, host: str, stage: str) -> None:
        """Record the stage of a host, and print the progress."""
        with self._lock:
            self._stages[host] = stage
            self._tell()

    def ready(self, host: str) -> None:
        """Report that a host is done."""
        with self._lock:
            self._stages.pop(host, None)
            self._ready += 1
            self._tell()

    def failed(self, host: str) -> None:
        """Report that a host cannot continue; the reason is printed at the end."""
        with self._lock:
            self._stages.pop(host, None)
            self._failed += 1
            self._tell()

    def look(self) -> None:
        """Print a change that has not been printed yet, because it came too soon after the previous line."""
        with self._lock:
            self._tell()

    def text(self) -> str:
        """Return the progress of all hosts in one line."""
        counts = [f"{self._ready} of {self._total} ready", *([f"{self._failed} failed"] if self._failed else [])]
        groups = Counter(self._stages.values()).most_common()
        told = [f"{fold(self._at(stage))} {stage}" for stage, _ in groups[:MOST_STAGES]]
        rest = sum(number for _, number in groups[MOST_STAGES:])
        return "; ".join([", ".join(counts), *told, *([f"{rest} more at other stages"] if rest else [])])

    def _at(self, stage: str) -> List[str]:
        return [host for host, at in self._stages.items() if at == stage]

    def _tell(self) -> None:
        text, now = self.text(), self._now()
        if self._live.is_started:
            self._live.update(Text(text))
        elif text != self._said and now - self._said_at >= EVERY_S:
            self._said, self._said_at = text, now
            print(f"[{now - self._began:6.1f} s] {text}", file=self._output, flush=True)
