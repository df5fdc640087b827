"""The tasks of a host that may be frozen, found by their signs of life and their processes' kernel states.

``Vitals`` does not report a healthy task, with one exception: it reports each new ``doing`` of a task's start.

``Vitals`` counts time in looks: seconds in which the whole machine stands still count against no task. Seconds in
which the kernel does not serve a task do not count either (``launch.agent.linux.procfs``). For a task that computes,
the part of a processor that it gets counts. For a task that reads or writes, a tenth of its time counts. For a task
that does nothing, all of its time counts. Where several tasks give signs of life and all signs are late, the machine
is slow: ``Vitals`` then counts silence at a fifth of that.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional

from cluster.protocol.heartbeat import STEPS, Sign, read_sign
from launch.agent.linux import processes
from launch.agent.linux.procfs import Work, pace, work_of

LOOK_S = 1.0
SLOW_SHARE = 0.2
QUIET_S = 3.0  # a sign of life that is so late, or a phase that lasts so long, is reported
_SHOWN = ("phase", "phase_s", "slowest_s", "usual_s", "owes", "doing")
LASTING = (*STEPS, "saving")  # the others may take any time


class Seen(NamedTuple):
    """A task as the agent has it: the pid is its leader's, the folder its own."""

    attempt: int
    pid: int
    folder: Path


@dataclass
class Watched:
    """The state of one attempt of a task; its seconds are counted in looks."""

    attempt: int
    beat: Optional[int] = None  # of its newest sign
    work: Optional[Work] = None  # that it had done by the last look
    phase: Optional[str] = None
    phase_s: float = 0.0  # as it tells
    counted_s: float = 0.0  # of its phase
    doing: str = ""  # of its start, as it was reported
    silent_s: float = 0.0
    stopped_s: float = 0.0
    is_reported: bool = False  # whether the lead takes it for unwell


class Vitals:
    """Looks at the tasks of this host, every ``LOOK_S``.

    Args:
      work_of: what the process with a pid has done so far.
    """

    def __init__(self, work_of: Callable[[int], Optional[Work]] = work_of) -> None:
        self._work_of = work_of
        self._watched: Dict[str, Watched] = {}
        self._looked_at = 0.0
        self._slow = False  # whether all were late at the last look

    def due(self, now: float) -> bool:
        """Return whether the next look is due."""
        return now - self._looked_at >= LOOK_S

    def look(self, now: float, tasks: Mapping[str, Seen]) -> Dict[str, Dict[str, Any]]:
        """Return the signs of tasks that are unwell, have just recovered, or are starting.

        Each task has {"attempt", "state", "stopped_s", "silent_s", …}. ``state`` is the kernel's state of the task's
        leader, and ``silent_s`` how late the task's sign of life is. ``counted_s`` is the part of the task's phase that
        counts; the other keys come from the sign, where there is one.
        """
        counted_s, self._looked_at = min(now - self._looked_at, 2 * LOOK_S), now
        self._watched = {name: self._watch(name, task.attempt) for name, task in tasks.items()}
        looked = {name: self._look(self._watched[name], task, counted_s) for name, task in tasks.items()}
        late = [each.silent_s >= QUIET_S for each in self._watched.values() if each.beat is not None]
        self._slow = len(late) > 1 and all(late)
        return {name: signs for name, signs in looked.items() if signs}

    def _watch(self, name: str, attempt: int) -> Watched:
        known = self._watched.get(name)
        return known if known is not None and known.attempt == attempt else Watched(attempt)

    def _look(self, watched: Watched, task: Seen, counted_s: float) -> Dict[str, Any]:
        process, sign = processes.inspect(task.pid), read_sign(task.folder)
        state = "Z" if process is None else process.state
        watched.stopped_s = watched.stopped_s + counted_s if state == "T" else 0.0
        part = self._pace(watched, task.pid, counted_s)
        if sign is not None and sign.beat == watched.beat:
            watched.silent_s += counted_s * part * (SLOW_SHARE if self._slow else 1.0)
        elif sign is not None:
            watched.silent_s, watched.beat = 0.0, sign.beat
            _count(watched, sign, part)
        lasts = sign is not None and sign.phase in LASTING and sign.phase_s >= QUIET_S
        unwell = state in "Tt" or watched.silent_s >= QUIET_S or lasts
        doing = "" if sign is None else sign.doing
        is_news = unwell or watched.is_reported or doing != watched.doing
        watched.is_reported, watched.doing = unwell, doing
        if not is_news:
            return {}
        shown = {} if sign is None else {key: getattr(sign, key) for key in _SHOWN}
        return {
            "attempt": watched.attempt, "state": state, "stopped_s": round(watched.stopped_s, 3),
            "silent_s": round(watched.silent_s, 3), "counted_s": round(watched.counted_s, 3), **shown,
        }  # fmt: skip

    def _pace(self, watched: Watched, pid: int, seconds: float) -> float:
        """Return the part of these seconds that counts."""
        before, watched.work = watched.work, self._work_of(pid)
        return 1.0 if before is None or watched.work is None else pace(before, watched.work, seconds)


def _count(watched: Watched, sign: Sign, part: float) -> None:
    """Add the counted seconds of its phase that a task reports since the last look."""
    if sign.phase != watched.phase or sign.phase_s < watched.phase_s:
        watched.counted_s = sign.phase_s
    else:
        watched.counted_s += part * (sign.phase_s - watched.phase_s)
    watched.phase, watched.phase_s = sign.phase, sign.phase_s
