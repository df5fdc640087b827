"""The live view of ``launch status --watch``, and the keys that a terminal sends to it."""

import contextlib
import math
import os
import re
import select
import sys
import termios
import time
from dataclasses import replace
from threading import Event, Thread
from typing import Callable, Iterator, List, Optional, TextIO

from launch.status.run import RunStatus
from launch.status.task import TaskStatus
from launch.view.live_view import LiveView, Picture
from launch.view.watch_keys import Choices

LOOK_S = 0.1
LOG_EVERY_S = 5.0
_KEY = re.compile("\x1b[\\[O][0-9;]*[A-Za-z~]|.", re.DOTALL)  # an arrow is one key


@contextlib.contextmanager
def keys_of(terminal: TextIO, pressed: Callable[[str], None]) -> Iterator[None]:
    """In this block, call ``pressed`` at once for each key, from another thread; then restore the terminal."""
    before = termios.tcgetattr(terminal)
    quiet = [*before[:3], before[3] & ~(termios.ICANON | termios.ECHO), *before[4:]]
    over = Event()
    reader = Thread(target=_read, args=(terminal.fileno(), over, pressed), name="keys", daemon=True)
    termios.tcsetattr(terminal, termios.TCSADRAIN, quiet)
    try:
        reader.start()
        yield
    finally:
        over.set()
        reader.join(2 * LOOK_S)
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _read(handle: int, over: Event, pressed: Callable[[str], None]) -> None:
    while not over.is_set():
        if select.select([handle], [], [], LOOK_S)[0]:
            data = os.read(handle, 256)
            if not data:  # the terminal has gone
                return
            for key in _KEY.findall(data.decode(errors="ignore")):
                pressed(key)


class WatchView(LiveView):
    """A live view whose viewer sorts and filters the tasks, reads a log, and pauses the picture."""

    def __init__(self) -> None:
        super().__init__()
        self.watch = Choices()
        self._status: Optional[RunStatus] = None  # of the picture, which may be paused
        self._newest: Optional[RunStatus] = None
        self._log: List[str] = []
        self._log_of, self._log_at = "", -math.inf

    def _draw(self) -> None:
        super()._draw()
        self._terminal.enter_context(keys_of(sys.stdin, self.press))

    def press(self, key: str) -> None:
        """Change the viewer's choices as ``key`` demands, and draw the picture again."""
        self.watch = self.watch.pressed(key)
        self._redraw(at_once=True)

    def __exit__(self, *_: object) -> None:
        if self._newest is not None:  # what stays on the screen takes no keys
            self._live.update(Picture(self._newest, self._console.height))
        super().__exit__()

    def show(self, status: RunStatus) -> None:
        self._newest = status
        if not self.watch.paused:
            self._status = status
            self._redraw()

    def attend(self, fetch: Callable[[TaskStatus, int], List[str]]) -> None:
        """Fetch the log that the viewer reads, if the last fetch is long enough ago; call this method often.

        Args:
          fetch: returns the last lines of the log of a task; the second argument is the most lines.
        """
        if self._status is None or self.watch.log is None or self.watch.paused:
            return
        task, now = self.watch.task_of_log(self._status.tasks), time.monotonic()
        if task is None:
            self._show_log([f"no task has {self.watch.log!r} in its name"])
            return
        if task.title != self._log_of:
            self.watch = replace(self.watch, log=task.name)  # so that another order of the tasks shows no other log
            self._log_of = task.title
            self._show_log([f"reading the log of {task.title} …"])
            self._log_at = -math.inf
        if now - self._log_at >= LOG_EVERY_S:
            self._show_log(fetch(task, self._console.height))
            self._log_at = time.monotonic()

    def _show_log(self, lines: List[str]) -> None:
        self._log = lines
        self._redraw()

    def _redraw(self, at_once: bool = False) -> None:
        if self._status is not None:
            picture = Picture(self._status, self._console.height, watch=self.watch, log=self._log)
            self._live.update(picture, refresh=at_once)


def view_with_keys() -> Optional[WatchView]:
    """Return a live view that takes keys; None if stdin or stdout is no terminal."""
    return WatchView() if sys.stdin.isatty() and sys.stdout.isatty() else None
