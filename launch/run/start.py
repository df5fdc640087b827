"""Start a run's agents, and undo a start that did not succeed on every host."""

import threading
import time
from contextlib import closing, contextmanager, suppress
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

from cluster.spec.model import Spec, is_local
from launch.agent.wire.run_request import RunRequest
from launch.errors import CannotStart, HostProblem, Interrupted, LaunchError, ProblemKind
from launch.fleet import Fleet
from launch.hosts.channel import Host, Silence
from launch.hosts.conversation import Conversation
from launch.run.follower import BEAT_S, MAY_CONTINUE
from launch.run.graph_check import find_mistake
from launch.teardown import by_host, remains, take_down

LAST_BEAT_S = 10.0
LOOK_S = 0.05  # the start waits at most so long for the last beat
_NOT_FOUND = (ProblemKind.UNKNOWN_NAME, ProblemKind.UNREACHABLE)


class LeaseKeeper:
    """A thread that renews the lease of a ready lead while the agents of other hosts still start."""

    def __init__(self, fleet: Fleet):
        self._fleet = fleet
        self._over = threading.Event()
        self._beating: Optional[threading.Thread] = None

    def __enter__(self) -> "LeaseKeeper":
        return self

    def begin(self, host: Host, run: str) -> None:
        """Start to send beats to the lead, unless this keeper already sends them."""
        if self._beating is not None:
            return
        # A separate thread, because all of the fleet's threads may be busy with hosts that are slow to start.
        self._beating = threading.Thread(target=self._beat, args=(host, run), daemon=True)
        self._beating.start()

    def _beat(self, host: Host, run: str) -> None:
        named = self._fleet.reference(host.name, run=run)
        # Without the lead no lease exists; the launcher notices a lost lead when it sends go.
        with suppress(HostProblem), closing(self._fleet.contact(host.name, "attach", named)) as lead:
            heard = None
            while not self._over.is_set():
                lead.send({"do": "beat", "heard": heard})
                heard = self._newest(lead, heard)

    def _newest(self, lead: Conversation, heard: Any) -> Any:
        """Wait for the time between two beats, and return the lead's newest answer to a beat.

        The method reads every line that comes meanwhile: an unread line would delay the answers behind it.
        """
        until = time.monotonic() + BEAT_S
        while not self._over.is_set() and time.monotonic() < until:
            with suppress(Silence):
                line = lead.receive(LOOK_S)
                if line is None:
                    raise lead.end_problem()
                heard = line.get("beat", heard)
        return heard

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._beating is not None:
            self._beating.join(LAST_BEAT_S)


def read_secrets(spec: Spec, environ: Mapping[str, str]) -> Dict[str, str]:
    """Return the values of ``secrets:`` from this process's environment.

    Raises:
      CannotStart: a secret is not set.
    """
    missing = [name for name in spec.secrets if name not in environ]
    if missing:
        raise CannotStart(
            [
                HostProblem.here(f"secrets: expected {name} in the environment, found none", "export it first")
                for name in missing
            ]
        )
    return {name: environ[name] for name in spec.secrets}


@contextmanager
def advising(target: str, hosts: Iterable[str]) -> Iterator[None]:
    """Add the next step to each CannotStart that this block raises.

    ``launch check`` finds every obstacle to a start. Where none of the SSH hosts in ``hosts`` is found, the file may be
    meant for other machines, or be an example. Then the advice includes ``--local``, which trains without these hosts.
    """
    try:
        yield
    except CannotStart as error:
        missed = {problem.host for problem in error.problems if problem.kind in _NOT_FOUND}
        nowhere = missed and missed >= {host for host in hosts if not is_local(host)}
        step = f"; `launch up --local {target}` trains on this machine alone" if nowhere else ""
        raise CannotStart(error.problems, f"list every obstacle with `launch check {target}`{step}") from error


def start_agents(fleet: Fleet, requests: Mapping[str, RunRequest], checks_graph: bool = False) -> List[str]:
    """Start an agent on every host; on a failure, a signal or a mistake in the job, end the agents that have started.

    The function returns lines about leftovers of earlier runs of this name that hosts ended first. Further lines name
    limits that a host's kernel does not enforce. Each error also names the hosts on which an agent may be left.

    Raises:
      CannotStart: an agent did not become ready; the error names every such host and the reason.
      Interrupted: a signal came.
      LaunchError: ``checks_graph``, and the job has a mistake.
    """

    def start(host: Host) -> Dict[str, Any]:
        request = requests[host.name]
        answer = fleet.start_agent(host, request)
        if host.name == fleet.lead and len(requests) > 1:
            keeping.begin(host, request.run)
        return answer

    with LeaseKeeper(fleet) as keeping:
        # Not interruptible: an agent that is just starting could not be ended.
        started, problems = fleet.each(start, list(requests), interruptible=False)
        found = None
        if checks_graph and not problems:
            keeping.begin(fleet.hosts[fleet.lead], requests[fleet.lead].run)
            found = find_mistake(fleet, requests[fleet.lead])
    received = fleet.interrupts.received
    if problems or found or received:
        problems += take_back(fleet, requests[fleet.lead].run, started, "the start failed")
        if received:  # an agent may also be left where the start failed, since its answer may be lost
            raise Interrupted(received[0], problems)
        if found is None:
            raise CannotStart(problems)
        raise LaunchError("\n".join(map(str, [found, *problems])))
    return by_host(_notes(started), [])


def take_back(fleet: Fleet, run: str, hosts: Iterable[str], reason: str) -> List[HostProblem]:
    """End the agents of a start on ``hosts``, and return a problem for each host on which something may be left."""
    left = take_down(fleet, {host: fleet.reference(host, run) for host in hosts}, reason, interruptible=False)
    remaining = [
        HostProblem(host, ProblemKind.REFUSED, f"LEFT: {', '.join(remains(report))}")
        for host, report in left.reports.items()
        if remains(report)
    ]
    return remaining + [problem.with_advice(MAY_CONTINUE) for problem in left.problems]


def _notes(started: Mapping[str, Mapping[str, Any]]) -> Iterator[Tuple[str, str]]:
    """Yield the lines that each host reports about its start, as (host, line)."""
    for host, answer in started.items():
        yield from ((host, line) for line in [*answer.get("ended", []), *answer.get("notes", [])])
