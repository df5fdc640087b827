"""``launch setup``: build the environment from the hosts file on every host, in parallel."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional

from cluster.protocol.typed_json import to_values
from launch.environments.identity import CHUNK, Order
from launch.errors import HostProblem, ProblemKind
from launch.fleet import Fleet
from launch.hosts.channel import Host, Silence
from launch.hosts.conversation import Conversation
from launch.view.console import fold
from launch.view.host_progress import HostProgress

LOOK_S = 0.5
SILENT_S = 300.0  # a host reports every few seconds, except while it removes old files on a slow disk
INTERRUPTED = "interrupted"
STATES = ("built", "up to date")  # of a host after a successful build
END_S = 15.0  # for an interrupted build to end


class SetupOutcome(NamedTuple):
    """The result of the builds: {host: ``built`` or ``up to date``}, and the problems of the other hosts."""

    ready: Dict[str, str]
    problems: List[HostProblem]


def set_up(fleet: Fleet, order: Order, progress: HostProgress) -> SetupOutcome:
    """Build the environments of ``order`` on every host, ``ssh.fanout`` at a time.

    If a host is out of reach, or its build fails, the other builds continue.

    Raises:
      Interrupted: a signal came; the builds on all reachable hosts have ended.
    """
    hosts = list(order.hosts)
    # Not interruptible: after a signal, each conversation first ends its build on the host.
    built, problems = fleet.each(
        lambda host: _HostBuild(fleet, host, order, progress).run(), hosts, interruptible=False
    )
    fleet.interrupts.check()
    return SetupOutcome(built, problems)


class _HostBuild:
    """The build of one host, from the request to the last answer, over one connection."""

    def __init__(self, fleet: Fleet, host: Host, order: Order, progress: HostProgress):
        self._fleet, self._host, self._order, self._progress = fleet, host, order, progress
        self._lost: Optional[HostProblem] = None  # why sending failed; the host's own reason is better

    def run(self) -> str:
        """Build the environment, and return ``built``, ``up to date`` or ``interrupted``.

        Raises:
          HostProblem: the host cannot be reached, or its environment cannot be built.
        """
        if self._interrupted():
            return INTERRUPTED
        self._show("connecting")
        try:
            conversation = self._fleet.contact(self._host.name, "build", self._order.request(self._host.name))
            try:
                done = self._follow(conversation)
            finally:
                conversation.close()
        except HostProblem:
            self._progress.failed(self._host.name)
            raise
        if done != INTERRUPTED:
            self._progress.ready(self._host.name)
        return done

    def _follow(self, conversation: Conversation) -> str:
        received_at = time.monotonic()
        while not self._interrupted():
            try:
                answer = conversation.receive(LOOK_S)
            except Silence:
                self._progress.look()
                if time.monotonic() - received_at > SILENT_S:
                    silent = f"the build sent no message for {SILENT_S:.0f} s"
                    raise HostProblem(self._host.name, ProblemKind.SILENT, silent) from None
                continue
            if answer is None:
                raise self._lost or conversation.end_problem()
            if answer.get("done") in STATES:
                return str(answer["done"])
            if "want" in answer:
                self._send(conversation, self._files(conversation, answer["want"]))
            if "stage" in answer:
                self._show(answer["stage"])
            received_at = time.monotonic()
        return self._end(conversation)

    def _files(self, conversation: Conversation, wanted: List[str]) -> List[Path]:
        unknown = [digest for digest in wanted if digest not in self._order.files]
        if unknown:
            raise conversation.noise_problem(f"expected hashes of files in the lock, found {unknown[0][:80]!r}")
        return [self._order.files[digest] for digest in wanted]

    def _send(self, conversation: Conversation, wanted: List[Path]) -> None:
        """Send the files that the host lacks.

        If the host fails during that time, the host's own reason is received afterwards.
        """
        for path in wanted:
            self._show(f"receiving {path.name.split('-')[0]}")
            try:
                self._send_file(conversation, path)
            except (HostProblem, OSError) as error:
                lost = f"the connection broke while {path.name} was sent: {error.__cause__ or error}"
                self._lost = HostProblem(self._host.name, ProblemKind.BROKEN, lost)
                conversation.end()
                return

    def _send_file(self, conversation: Conversation, path: Path) -> None:
        """Send a file in pieces, so that no whole file is in memory."""
        with open(str(path), "rb") as file:
            for chunk in iter(lambda: file.read(CHUNK), b""):
                if self._interrupted():
                    return
                conversation.send_bytes(chunk)
                self._progress.look()

    def _end(self, conversation: Conversation) -> str:
        """End the build on the host, and wait for that end."""
        try:
            conversation.end()
            until = time.monotonic() + END_S
            while conversation.receive(max(0.0, until - time.monotonic())) is not None:
                continue
        except (Silence, HostProblem):
            pass  # out of reach: the host's agent ends the build without a connection
        return INTERRUPTED

    def _interrupted(self) -> bool:
        return bool(self._fleet.interrupts.received)

    def _show(self, stage: str) -> None:
        self._progress.show(self._host.name, stage)


def in_lines(outcome: SetupOutcome) -> List[str]:
    """Return one line for the hosts with a new environment, and one for the hosts that were up to date."""
    became = {state: [host for host, at in outcome.ready.items() if at == state] for state in STATES}
    return [f"{fold(hosts)}: {state}" for state, hosts in became.items() if hosts]


@dataclass(frozen=True)
class HostSetup:
    """The environment of one host.

    Attributes:
      host: Name of a host of the file.
      environment: Environment of the tasks on the host, named by the hash of its lock file and Python.
      state: State of the environment: built, up to date or failed.
      error: Reason of the failure; else null.
    """

    host: str
    environment: str
    state: str
    error: Optional[str]


@dataclass(frozen=True)
class SetupReport:
    """The object of ``setup --json``.

    Attributes:
      ready: True if every host has its environment.
    """

    ready: bool
    hosts: List[HostSetup]


def as_values(order: Order, outcome: SetupOutcome) -> Dict[str, Any]:
    """Return the object of ``setup --json``."""
    problems = {problem.host: problem.reason for problem in outcome.problems}
    hosts = [
        HostSetup(host, digest, outcome.ready.get(host, "failed"), problems.get(host))
        for host, digest in order.hosts.items()
    ]
    return to_values(SetupReport(not problems, hosts))
