"""Several trials at a time."""

import threading
from typing import Any, List

from tests.chaos.__main__ import carry_out


class FakeArena:
    """Notes what is carried out in it, and whether two trials ever were at once."""

    def __init__(self) -> None:
        self.trials: List[Any] = []
        self.shared = False
        self._busy = threading.Lock()

    def carry_out(self, trial: Any) -> Any:
        self.shared = self.shared or not self._busy.acquire(blocking=False)
        self.trials.append(trial)
        self._busy.release()
        return trial


def test_every_trial_is_carried_out_once_and_alone_on_its_hosts() -> None:
    arenas: List[Any] = [FakeArena(), FakeArena(), FakeArena()]
    trials: List[Any] = list(range(50))
    assert sorted(carry_out(trials, arenas)) == trials
    assert sorted(trial for arena in arenas for trial in arena.trials) == trials
    assert not any(arena.shared for arena in arenas)
