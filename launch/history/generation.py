"""The generation of a run that is to start, by which its hosts later order the runs of a name.

The generation is one above the highest that any of the run's hosts knows. The generation is also at least the
time in seconds since 1970. So runs of hosts that had none in common are in order, as far as the launchers' clocks
are right.
"""

import time
from dataclasses import replace
from typing import Dict, Iterable, Mapping, NamedTuple, Optional

from launch.agent.wire.run_request import RunRequest
from launch.errors import CannotStart
from launch.fleet import Fleet
from launch.hosts.answer_shapes import KNOWS
from launch.hosts.conversation import fit

ANSWER_S = 60.0  # for a host to look through its runs


def next_generation(highest: Iterable[int], now: float) -> int:
    """Return the generation of a run that starts at the time ``now``.

    ``highest`` has the highest generation that each host knows.
    """
    return max(int(now), 1 + max(highest, default=0))


class Numbered(NamedTuple):
    """The request to each host with the run's generation, and what else the hosts know of a start.

    Attributes:
      is_free: whether the run's own name is free on all hosts.
      boot_obstacles: for each host the reason why no boot would start its agent again; None where one would.
    """

    requests: Dict[str, RunRequest]
    is_free: bool
    boot_obstacles: Dict[str, Optional[str]]


def number(fleet: Fleet, requests: Mapping[str, RunRequest]) -> Numbered:
    """Return requests that have the run's generation.

    Raises:
      CannotStart: a host cannot be asked.
      HostProblem: its answer is not of the shape that is read.
      Interrupted: a signal came.
    """
    asked = {host: fleet.reference(host, request.run) for host, request in requests.items()}
    answers, problems = fleet.ask("find", asked, ANSWER_S)
    if problems:
        raise CannotStart(problems)
    for host, answer in answers.items():
        fit(host, answer, KNOWS)
    generation = next_generation((answer["highest"] for answer in answers.values()), time.time())
    numbered = {host: replace(request, generation=generation) for host, request in requests.items()}
    obstacles = {host: answer.get("boot_obstacle") for host, answer in answers.items()}
    return Numbered(numbered, not any(answer["taken"] for answer in answers.values()), obstacles)
