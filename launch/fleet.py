"""Send requests to all hosts of a run in parallel, over a bounded number of connections; report every failure."""

import math
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import is_dataclass
from functools import partial
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union

from cluster.protocol.typed_json import Malformed, from_values, to_values
from cluster.spec.model import Spec, TaskSpec
from launch.agent.linux.open_files import allow_open_files
from launch.agent.state.run_folder import name_of
from launch.agent.wire.run_request import RunRequest
from launch.agent.wire.typed_verbs import Answer, Request, TypedVerb
from launch.agent.wire.verb_requests import RunReference
from launch.calls import Calls, ThreadDeadline, VerbDeadline
from launch.errors import CannotStart, HostProblem, ProblemKind
from launch.hosts import rpc
from launch.hosts.bundle import Code
from launch.hosts.channel import Host
from launch.hosts.conversation import Conversation
from launch.signals import Interrupts
from launch.slurm.slurm_host import SlurmHost
from launch.status.task import TaskStatus
from launch.transports import make_hosts

T = TypeVar("T")
AnyTask = Union[TaskSpec, TaskStatus]  # from the file, or from a run
START_S = 90.0  # for an agent to become ready
LEAD_S = 30.0  # for the lead to answer about a run
ASKING_S = 35.0  # and ssh.connect_timeout_s: for all questions of a verb that asks about a run
FILES = 256  # open files that this process needs besides those for hosts
FILES_PER_HOST = 12


def names_by_host(tasks: Sequence[AnyTask]) -> Dict[str, Tuple[str, ...]]:
    """Return the names of the tasks on each host: {host: names}."""
    names: Dict[str, Tuple[str, ...]] = {}
    for task in tasks:
        names[task.host] = (*names.get(task.host, ()), task.name)
    return names


class Fleet:
    """The hosts of a run, and the code that the hosts need.

    Args:
      hosts: {name: Python to run on that host}
      interrupts: the signals; the fleet checks them while it waits for hosts, so that Ctrl-C ends the wait.
      run: the full name of the run that verbs act on; None for the newest.

    ``lead`` is the host of the run's lead: the chief's host, unless ``locate`` finds another. ``tasks`` are the file's
    tasks; after ``locate`` has found the run named ``run``, they are the tasks of that run.
    """

    def __init__(
        self, spec: Spec, hosts: Mapping[str, str], code: Code, interrupts: Interrupts, run: Optional[str] = None
    ):
        self.spec, self.code, self.interrupts, self.run = spec, code, interrupts, run
        self._closing = ExitStack()
        self.hosts: Dict[str, Host] = make_hosts(hosts, spec, self._closing)
        self.lead = spec.chief.host
        self.tasks: Sequence[AnyTask] = spec.tasks
        self._pool = ThreadPoolExecutor(max_workers=2 * spec.ssh.fanout, thread_name_prefix="host")
        self._deadline = ThreadDeadline()

    def __enter__(self) -> "Fleet":
        allow_open_files(FILES + FILES_PER_HOST * len(self.hosts))
        try:
            with ThreadPoolExecutor(self.spec.ssh.fanout) as looking:
                list(looking.map(self._look_up, self.hosts.values()))
            self.interrupts.check()  # Ctrl-C also ends an `ssh -G`, which has then found no mistake
            for host in self.hosts.values():
                host.prepare()
        except BaseException:
            self._closing.close()
            raise
        return self

    def _look_up(self, host: Host) -> None:
        if not self.interrupts.received:
            host.look_up()

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Give all requests of this block one common deadline, ``seconds`` from now.

        A host that was out of reach is not tried again in this block: each further request to it gets the same problem.
        If the block is inside a block with another deadline, the earlier deadline counts.
        """
        before = self._deadline.now
        self._deadline.now = VerbDeadline(seconds, before)
        try:
            yield
        finally:
            self._deadline.now = before

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Give all requests of this block one deadline, for questions that a host answers in a second or two."""
        with self.within(ASKING_S + self.spec.ssh.connect_timeout_s):
            yield

    def __exit__(self, *_: object) -> None:
        for host in self.hosts.values():
            host.close()
        self._closing.close()
        self._pool.shutdown(wait=False)

    @property
    def name(self) -> str:
        """Return the name of the run that verbs act on, without its start time."""
        return self.spec.name if self.run is None else name_of(self.run)

    def reference(self, host: str, run: Optional[str] = None) -> RunReference:
        """Return the reference to ``run`` on a host, for a request; by default, to the run that verbs act on."""
        return RunReference(self.name, host, self.spec.workdir, run or self.run)

    @property
    def slurm_job(self) -> str:
        """Return the id of the Slurm job that has allocated the hosts; "" without a job."""
        return next((host.job for host in self.hosts.values() if isinstance(host, SlurmHost)), "")

    def path_on(self, host: Optional[str], path: Optional[str]) -> str:
        """Return ``gpu01:/path``; or ``/path`` with ``--local``, because all hosts' files are then on this machine."""
        return f"{path}" if self.spec.local else f"{host}:{path}"

    def connect(self) -> None:
        """Connect to every host.

        Raises:
          CannotStart: hosts are out of reach; the error names each of them.
        """
        _, problems = self.each(lambda host: host.connect(), list(self.hosts))
        if problems:
            raise CannotStart(problems)

    def ask(
        self,
        verb: str,
        requests: Mapping[str, Any],
        timeout_s: float,
        interruptible: bool = True,
        stay_s: float = rpc.STAY_S,
    ) -> "Answers":
        """Send each host its own request of the same verb, and return the answers.

        The requests are from ``launch.agent.wire``. The program on a host then waits ``stay_s`` seconds for another.
        """

        return self.each(
            lambda host: self.ask_host(host, verb, requests[host.name], timeout_s, stay_s),
            list(requests),
            interruptible,
        )

    def ask_host(
        self, host: Host, verb: str, request: Any, timeout_s: float, stay_s: float = rpc.STAY_S
    ) -> Dict[str, Any]:
        """Send one host a request, and return the answer.

        Raises:
          HostProblem: the host cannot be reached, or its answer is an error.
        """
        return rpc.ask(
            host=host,
            code=self.code,
            workdir=self.spec.workdir,
            verb=verb,
            request=_values(request),
            timeout_s=timeout_s,
            stay_s=stay_s,
        )

    def ask_for(
        self,
        verb: TypedVerb[Request, Answer],
        requests: Mapping[str, Request],
        timeout_s: float,
        interruptible: bool = True,
        stay_s: float = rpc.STAY_S,
    ) -> Tuple[Dict[str, Answer], List[HostProblem]]:
        """Call ``ask``, and return each answer as the verb's dataclass; an answer of another shape is a problem."""

        def ask(host: Host) -> Answer:
            values = self.ask_host(host, verb.name, requests[host.name], timeout_s, stay_s)
            try:
                return from_values(verb.answer, values)
            except Malformed as error:
                strange = f"`{verb.name}`: expected an answer of this version, found {error}"
                raise HostProblem(host.name, ProblemKind.NOISE, strange) from None

        return self.each(ask, list(requests), interruptible)

    def ask_lead(self, verb: str, request: Any) -> Dict[str, Any]:
        """Send the lead a request about a run, and return the answer.

        Raises:
          CannotStart: the lead is out of reach, or its answer is an error.
        """
        with self.asking():
            answers, problems = self.ask(verb, {self.lead: request}, LEAD_S)
        if problems:
            raise CannotStart(problems)
        return answers[self.lead]

    def contact(self, host: str, verb: str, request: Any) -> Conversation:
        """Open a conversation with one host.

        Raises:
          HostProblem: the host cannot take part in the conversation.
        """
        return rpc.contact(self.hosts[host], self.code, self.spec.workdir, verb, _values(request))

    def start_agent(self, host: Host, request: RunRequest) -> Dict[str, Any]:
        """Start the agent of one host, and wait until that agent is ready.

        Raises:
          HostProblem: the agent did not become ready; the text has the reason.
        """
        return self.ask_host(host, "start", request, START_S)

    def begin(self, host: str, function: Callable[[Host], T]) -> "Future[T]":
        """Call ``function`` for a host, in the fleet's pool of threads."""
        return self._pool.submit(function, self.hosts[host])

    def each(
        self,
        function: Callable[[Host], T],
        hosts: Sequence[str],
        interruptible: bool = True,
        timeout_s: float = math.inf,
    ) -> Tuple[Dict[str, T], List[HostProblem]]:
        """Call ``function`` for every host, ``ssh.fanout`` at a time.

        The method returns the results by host, and the problems of the other hosts. A host that is not done after
        ``timeout_s``, or by the verb's deadline, has a problem. With a verb's deadline, one more call may begin for
        each slow call (``launch.calls``).

        Raises:
          Interrupted: a signal came while the fleet waited for hosts; with ``interruptible`` False the fleet continues
            to wait.
        """
        deadline = self._deadline.now
        until, late = deadline.limit(timeout_s)
        asked = {name: partial(function, self.hosts[name]) for name in hosts if name not in deadline.gone}
        calls: Calls[T] = Calls(asked, self._pool, self.spec.ssh, lends=deadline.is_bounded)
        for _ in calls.run(until):
            if interruptible and self.interrupts.received:
                calls.cancel()
                self.interrupts.check()
        results, problems, unfinished = calls.ended()
        for name in unfinished:
            self.hosts[name].close()  # the thread that waits for the host then stops
            problems[name] = HostProblem(name, ProblemKind.SLOW, late)
        found = [deadline.gone[name] for name in hosts if name in deadline.gone]
        deadline.note(problems)
        different = {str(each): each for each in [*found, *problems.values()]}  # a gateway's is that of several hosts
        return results, list(different.values())


def _values(request: Any) -> Mapping[str, Any]:
    values: Mapping[str, Any] = to_values(request) if is_dataclass(request) else request
    return values


Answers = Tuple[Dict[str, Dict[str, Any]], List[HostProblem]]
