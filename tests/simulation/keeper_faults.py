"""Faults of keepers, and what ends their agents or hinders the next ones; ``faults`` begins them beside the others."""

from random import Random
from typing import Any, Callable, Dict, List, Optional, Tuple

from launch.agent.service.keeping import FAILED, TAKEN
from tests.simulation.keepers import Keepers

ALIKE = 40  # added to a seed, for their own numbers
KINDS: Dict[str, int] = {
    "keeper": 3, "keeper stopped": 4, "exit": 4, "memory": 3, "refused": 3, "taken": 3, "rival": 2, "tidy": 2,
}  # fmt: skip
ENDS = ("agent", "agent", "exit", "stopped")  # of agents, soon after
LONGEST_S = 120.0


def drawn(seed: int, hosts: List[str], until: float) -> List[Tuple[float, str, str, float]]:
    """The further faults of a history: when, which, where and for how long; half of them meet an agent's end."""
    random, found = Random(seed + ALIKE), []
    for _ in range(random.choice([0, 1, 1, 2, 3])):
        kind, host = random.choices(list(KINDS), list(KINDS.values()))[0], random.choice(hosts)
        at, seconds = random.uniform(0.0, until), random.choice([3.0, 11.0, 30.0, 60.0, LONGEST_S])
        found.append((at, kind, host, seconds * random.uniform(0.8, 1.2)))
        if random.random() < 0.6:
            soon_s = random.choice([0.0, 0.3, 1.0, 4.0, 10.0])
            found.append((at + soon_s, random.choice(ENDS), host, random.choice([14.0, 30.0])))
    return found


def _changes(start: Callable[[Keepers], None], end: Callable[[Keepers], None] = lambda keepers: None) -> Any:
    def begin(fault: Any, world: Any) -> Callable[[], None]:
        keepers = world.machines[fault.what].keepers
        start(keepers)
        return lambda: end(keepers)

    return begin


def _memory(has: bool) -> Callable[[Keepers], None]:
    def change(keepers: Keepers) -> None:
        keepers.have_memory = has

    return change


def _refusal(code: Optional[int]) -> Callable[[Keepers], None]:
    def change(keepers: Keepers) -> None:
        keepers.refusal = code

    return change


def _exit(fault: Any, world: Any) -> None:
    """An agent ends by itself, as by an exception."""
    world.machines[fault.what].fail_agent()


def _tidies(fault: Any, world: Any) -> None:
    """An agent takes its time to remove files, after it has closed its pulse."""
    world.machines[fault.what].tidies_s = min(fault.seconds, LONGEST_S)


BEGIN: Dict[str, Any] = {
    "keeper": _changes(Keepers.kill),
    "keeper stopped": _changes(Keepers.stop, Keepers.go_on),
    "exit": _exit,
    "memory": _changes(_memory(False), _memory(True)),
    "refused": _changes(_refusal(FAILED), _refusal(None)),
    "taken": _changes(_refusal(TAKEN), _refusal(None)),
    "rival": _changes(Keepers.begin_rival),
    "tidy": _tidies,
}
