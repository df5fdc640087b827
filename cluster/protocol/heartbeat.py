"""The heartbeat of a task: a second thread of the task reports every second, even when no step ends.

``pulse.json`` in the task's folder contains a ``Sign``: the activity of the task. The thread overwrites the file in
place, so a full disk does not make a task look dead. Time is counted in heartbeats, so time in which the whole machine
is suspended does not count.

On the signal ``STACKS_BY`` the task writes the stack of each of its Python threads into ``stacks.txt``, whatever the
threads are doing.
"""

import contextlib
import faulthandler
import json
import os
import signal
import threading
import time
from collections import deque
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Callable, Deque, Dict, Optional, Tuple, Union

from cluster.protocol.shared_files import read_record

PULSE = "pulse.json"
STACKS = "stacks.txt"
STACKS_BY = signal.SIGQUIT
BEAT_S = 1.0
SIZE = 512  # bytes of the file, always
LATE_S = 3.0  # a step that takes as long leads to a call of ``ask``
WINDOW_S = 300.0
STEPS = ("first step", "step")  # the phases that are steps
USUAL_OF = 9  # the number of steps that ``usual_s`` is the median of
PHASES = {
    "starting": "the task loads code, builds its graph, or joins the other tasks, for the first time or again",
    "first step": "the task takes its first step after it has joined, or its first step of another kind",
    "step": "the task takes a step",
    "saving": "the task writes a checkpoint",
    "evaluating": "a task that trains measures a checkpoint on held-out examples",
    "comparing": "the task repeats a step in one process, and compares the results",
    "ending": "the last step is over: the task saves, evaluates, and leaves the cluster",
    "serving": "the task holds variables, or lends its devices to the chief",
    "following": "the evaluator waits for checkpoints, or measures one",
}


@dataclass(frozen=True)
class Sign:
    """One heartbeat of a task, with the task's current activity.

    ``beat`` counts the heartbeats. ``phase`` is one of ``PHASES``, and ``phase_s`` is its duration so far, in seconds.
    ``slowest_s`` is the longest time of the phase in the last minutes, without waits for other workers; 0 if unknown.
    ``usual_s`` is the usual duration of recent steps, including waits; 0 before the first step. ``owes``: whether other
    workers wait for this task in the current step; None where that is not known. ``doing``: the current part of the
    task's start, in words.
    """

    beat: int
    phase: str
    phase_s: float = 0.0
    slowest_s: float = 0.0
    usual_s: float = 0.0
    owes: Optional[bool] = None
    doing: str = ""


class Heartbeat:
    """The recorder of a task's activity; a second thread writes the heartbeats.

    A record costs the task's own thread little: it only sets some attributes. The second thread does the rest.

    ``ask`` returns whether other workers wait for this task in its step. A separate thread calls ``ask``, only when a
    step is late, so the call may block without end.
    """

    def __init__(self, folder: Optional[Union[str, Path]], clock: Callable[[], float] = time.monotonic):
        self._folder = None if folder is None else Path(folder)
        self.ask: Optional[Callable[[], Optional[bool]]] = None
        self._phase, self._doing = "starting", ""
        self._phases = 0  # the number of phases so far
        self._clock = clock
        self._since = clock()
        self._slowest: Dict[str, Slowest] = {}
        self._steps: Deque[float] = deque(maxlen=USUAL_OF)  # the duration of each recent step in seconds
        self._beats = 0
        self._seen: Tuple[int, int] = (0, 0)  # the number of phases, and the beat at which that number was first seen
        self._asker: Optional[threading.Thread] = None
        self._answer: Tuple[int, Optional[bool]] = (-1, None)  # phases at the call of ``ask``, and its result

    # -- the task's own thread

    def begin_phase(self, phase: str, waited_s: float = 0.0) -> None:
        """Begin a phase, and end the previous phase.

        ``waited_s`` is how long the task waited for other workers in the previous phase, in seconds.
        """
        now = self._clock()
        slowest = self._slowest.get(self._phase)
        if slowest is None:
            slowest = self._slowest.setdefault(self._phase, Slowest())
        slowest.note(now, now - self._since - waited_s)
        if self._phase in STEPS:
            self._steps.append(now - self._since)
        self._phase, self._doing, self._since = phase, "", now
        self._phases += 1

    def note(self, doing: str) -> None:
        """Note ``doing``, the current part of the task's start, in a few words: ``builds its graph``."""
        self._doing = doing

    def restart(self) -> None:
        """Return to the phase ``starting`` without recording the duration of the interrupted phase."""
        self._phase, self._since = "starting", self._clock()
        self._phases += 1

    # -- the second thread

    def begin(self) -> None:
        """Start to write heartbeats, and stacks on the signal ``STACKS_BY``; do nothing without a folder."""
        if self._folder is None:
            return
        with contextlib.suppress(OSError):
            stacks = open(str(self._folder / STACKS), "w")  # noqa: SIM115 - as long as the process lives
            faulthandler.register(STACKS_BY, stacks, all_threads=True)
        with contextlib.suppress(OSError):
            file = os.open(str(self._folder / PULSE), os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
            threading.Thread(target=self._live, args=[file], name="pulse", daemon=True).start()

    def _live(self, file: int) -> None:
        pause = threading.Event()
        while True:
            with contextlib.suppress(OSError):
                os.pwrite(file, json.dumps(asdict(self.beat())).ljust(SIZE).encode(), 0)
            pause.wait(BEAT_S)

    def beat(self) -> Sign:
        """Return the next heartbeat; if the step is late, call ``ask`` in another thread."""
        self._beats += 1
        phases, phase = self._phases, self._phase
        if phases != self._seen[0]:
            self._seen = (phases, self._beats)
        lasts_s = (self._beats - self._seen[1]) * BEAT_S
        slowest = self._slowest.get(phase)
        slowest_s = 0.0 if slowest is None else slowest.seconds
        # The lower one of two: the duration of a first step is useless once a second step has been recorded.
        steps = sorted(self._steps.copy() or [0.0])
        usual_s = steps[(len(steps) - 1) // 2]
        if phase in STEPS and lasts_s >= asks_after(slowest_s):
            self._ask_beside(phases)
        owes = self._answer[1] if self._answer[0] == phases else None
        return Sign(
            beat=self._beats,
            phase=phase,
            phase_s=lasts_s,
            slowest_s=round(slowest_s, 3),
            usual_s=round(usual_s, 3),
            owes=owes,
            doing=self._doing,
        )

    def _ask_beside(self, phases: int) -> None:
        ask = self.ask
        if ask is not None and (self._asker is None or not self._asker.is_alive()):
            self._asker = threading.Thread(target=self._ask_once, args=[ask, phases], name="pulse asks", daemon=True)
            self._asker.start()

    def _ask_once(self, ask: Callable[[], Optional[bool]], phases: int) -> None:
        try:
            owes = ask()
        except Exception:  # an error that breaks a session also breaks the step, which reports it
            owes = None
        self._answer = (phases, owes)


def asks_after(slowest_s: float) -> float:
    """Return the seconds after which a step is late, so that its task calls ``ask``."""
    return max(LATE_S, 2 * slowest_s)


class Slowest:
    """The longest of the spans of the last ``WINDOW_S`` to twice ``WINDOW_S``. Times are in seconds."""

    def __init__(self) -> None:
        self._until, self._now_s, self._before_s = 0.0, 0.0, 0.0

    def note(self, now: float, span_s: float) -> None:
        """Note a span of ``span_s`` seconds that ended at ``now``."""
        if now >= self._until:
            late = now >= self._until + WINDOW_S
            self._until, self._before_s, self._now_s = now + WINDOW_S, 0.0 if late else self._now_s, 0.0
        if span_s > self._now_s:
            self._now_s = span_s

    @property
    def seconds(self) -> float:
        """Return the length of the longest span; 0 before the first span."""
        return max(self._now_s, self._before_s)


def read_sign(folder: Union[str, Path]) -> Optional[Sign]:
    """Return the newest heartbeat in a task's folder; None if the file is missing, incomplete, or malformed."""
    try:
        sign = read_record(Path(folder) / PULSE, Sign, SIZE)
    except (OSError, ValueError):
        return None
    counts = min(sign.beat, sign.phase_s, sign.slowest_s, sign.usual_s) >= 0
    return sign if counts and sign.phase in PHASES and sign.doing.isprintable() else None
