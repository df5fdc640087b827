"""A run before its start: its plan, and each agent's request, with the run's generation and its return after a boot.

If another run has the name, the launcher names the run after the next second. Hosts order the runs of a name by their
generations. A new run's generation is one above the highest that any of its hosts knows, and at least the time in
seconds since 1970. So even runs that share no host are in order, as far as the launchers' clocks are right.
"""

import os
import pwd
import re
import secrets
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from cluster.protocol.command_template import fill, names_in
from cluster.protocol.settings import Hook
from cluster.spec.model import Spec
from launch.agent.wire.run_request import RunRequest
from launch.errors import CannotStart, HostProblem
from launch.fleet import Fleet
from launch.hosts.answer_shapes import KNOWS
from launch.hosts.bundle import Code, JobCode, launcher_code, with_folder
from launch.hosts.conversation import fit
from launch.hosts.job_files import APART
from launch.plan.agent_requests import requests
from launch.plan.plan import Plan, make_plan, refuse_oversized, run_name
from launch.run.start import read_secrets
from launch.target import Target
from launch.view.console import of_bytes

LARGE = 5_000_000  # bytes of a job's folder
GENERATION_S = 60.0  # for a host to look through its runs
RETURN_S = 540.0  # a host that boots for longer is lost; tasks wait a little longer for each other
DESERTED_S = 300.0  # for the lead's agent once its host answers: folders may be mounted late
ELASTIC_REJOIN_S = 60.0  # for members after a boot of the lead's host: after a power cut all boot
_URL = re.compile(r"https?://[!-.0-~][!-~]*")
_HEADER = re.compile(r"[\t -~]*")


class RunStart(NamedTuple):
    """The start of a run: its spec, and whether the run resumes from a checkpoint.

    Attributes:
      needed: with ``resume``, whether the start fails if no host has a checkpoint.
      source: the run whose checkpoint the new run resumes from; None for the newest checkpoint.
      detach: whether the launcher leaves the run once the run is up.
      follows: the run without its chief's host that the new run succeeds; None where a user starts the new run.
    """

    spec: Spec
    resume: bool = False
    needed: bool = True
    source: Optional[str] = None
    detach: bool = False
    follows: Optional[str] = None


class Fragile(NamedTuple):
    """Hosts whose reboot would end a detached run, and the reason; the reason is "" for this machine."""

    hosts: Tuple[str, ...]
    why: str


@dataclass(frozen=True)
class Draft:
    """The draft of a run that would begin at ``begins``; the run's name contains that time."""

    plan: Plan
    requests: Dict[str, RunRequest] = field(repr=False)  # by host; requests hold secrets
    code: Code = field(repr=False)
    begins: datetime
    at: Callable[[datetime], "Draft"] = field(repr=False)  # the same run with another time of its start
    fragile: Sequence[Fragile] = ()  # hosts whose reboot ends the run, once the launcher has left it

    def a_second_later(self) -> "Draft":
        """Return the same run, but with a start one second later, and so with another name."""
        return self.at(self.begins + timedelta(seconds=1))


def draft(target: Target, start: RunStart, begins: datetime) -> Draft:
    """Return the draft of a run.

    Raises:
      LaunchError: the job or a secret is missing, a hook is invalid with its secrets, or the cluster's description is
        too long for a process.
    """
    spec, job = start.spec, target.job(start.spec)
    code = with_folder(launcher_code(), job)
    token, values = secrets.token_hex(16), read_secrets(spec, os.environ)
    refuse_unusable(spec, values)

    def at(begins: datetime) -> Draft:
        plan = make_plan(spec, job, run_name(spec.name, begins), sys.executable)
        asked = requests(
            plan=plan,
            code=code,
            token=token,
            secrets=values,
            resume=start.resume,
            file=str(target),
            user=user(),
            detached=start.detach,
            follows=start.follows,
        )
        return Draft(plan, asked, code, begins, at)

    first = at(begins)
    refuse_oversized(first.plan)
    return first


def remarks_on_size(code: Code, job: JobCode) -> List[str]:
    """Return a line about a large folder of a job, because few users mean to send more than code; else no line."""
    size = len(code.bundles["job"].tar) if job.folder is not None else 0
    folder = job.folder / (job.package or "") if job.folder is not None else None
    return [f"sends the folder {folder} to each host, {of_bytes(size)}; {APART}"] if size >= LARGE else []


def user() -> str:
    """Return the user of this process and the name of this machine: ``anna@desk7``."""
    number = os.getuid()
    try:
        name = pwd.getpwuid(number).pw_name
    except KeyError:  # common in containers
        name = f"uid{number}"
    return f"{name}@{os.uname().nodename}"


def next_generation(highest: Iterable[int], now: float) -> int:
    """Return the generation of a run that starts at the time ``now``.

    ``highest`` has the highest generation that each host knows.
    """
    return max(int(now), 1 + max(highest, default=0))


class Numbered(NamedTuple):
    """The request to each host with the run's generation, and two facts that the hosts report.

    Attributes:
      is_free: whether the run's own name is free on all hosts.
      boot_obstacles: for each host, the reason why a boot would not restart its agent; None if it would.
    """

    requests: Dict[str, RunRequest]
    is_free: bool
    boot_obstacles: Dict[str, Optional[str]]


def with_generation(fleet: Fleet, requests: Mapping[str, RunRequest]) -> Numbered:
    """Return ``requests`` with the run's generation, and facts about their hosts.

    Raises:
      CannotStart: a host cannot be asked.
      HostProblem: a host's answer has another shape than expected.
      Interrupted: a signal came.
    """
    asked = {host: fleet.reference(host, request.run) for host, request in requests.items()}
    answers, problems = fleet.ask("find", asked, GENERATION_S)
    if problems:
        raise CannotStart(problems)
    for host, answer in answers.items():
        fit(host, answer, KNOWS)
    generation = next_generation((answer["highest"] for answer in answers.values()), time.time())
    numbered = {host: replace(request, generation=generation) for host, request in requests.items()}
    obstacles = {host: answer.get("boot_obstacle") for host, answer in answers.items()}
    return Numbered(numbered, not any(answer["taken"] for answer in answers.values()), obstacles)


def with_returns(
    plan: Plan, requests: Mapping[str, RunRequest], obstacles: Mapping[str, Optional[str]]
) -> Dict[str, RunRequest]:
    """Return ``requests`` for a detached run; hosts without an obstacle return to the run after a boot."""
    reasons = boot_obstacles(plan, obstacles)
    returning = [host for host in plan.hosts if host not in reasons]
    return {host: _with_return(plan, request, returning) for host, request in requests.items()}


def _with_return(plan: Plan, request: RunRequest, returning: List[str]) -> RunRequest:
    if plan.lead in returning:
        request = replace(request, stay_s=RETURN_S, deserted_s=DESERTED_S)
    run_plan = request.run_plan
    if run_plan is not None and returning:
        patience = {} if plan.spec.elastic else {host: RETURN_S for host in returning if host != plan.lead}
        run_plan = replace(run_plan, patience=patience, rejoin_s=ELASTIC_REJOIN_S if plan.spec.elastic else RETURN_S)
    return replace(request, returns=request.host in returning, run_plan=run_plan)


def boot_obstacles(plan: Plan, obstacles: Mapping[str, Optional[str]]) -> Dict[str, str]:
    """Return the hosts whose boot would not restart their agents, each with the reason.

    Agents on the launcher's machine inherit the launcher's environment, which must not be stored for a restart.
    """
    spec = plan.spec
    if spec.transport == "slurm":
        return dict.fromkeys(plan.hosts, "Slurm started it")
    here = {host: "" for host in plan.hosts if spec.is_here(host)}
    if spec.secrets:
        return {**dict.fromkeys(plan.hosts, "its secrets are in no file"), **here}
    return {**{host: why for host, why in obstacles.items() if why is not None}, **here}


def fragile(plan: Plan, obstacles: Mapping[str, Optional[str]]) -> List[Fragile]:
    """Return the hosts whose reboot would end a detached run, grouped by reason."""
    reasons = boot_obstacles(plan, obstacles)
    by_reason: Dict[str, List[str]] = defaultdict(list)
    for host in plan.hosts if plan.spec.elastic is None else [plan.lead]:
        if host in reasons:
            by_reason[reasons[host]].append(host)
    return [Fragile(tuple(hosts), why) for why, hosts in by_reason.items()]


def refuse_unusable(spec: Spec, secrets: Mapping[str, str]) -> None:
    """Refuse a spec whose hooks cannot be used with these secrets; the message has no part of a secret.

    Raises:
      CannotStart: a URL or a header is invalid; the message names its secrets.
    """
    found = dict.fromkeys(problem for hook in spec.hooks for problem in _hook_problems(hook, secrets))
    if found:
        raise CannotStart([HostProblem.here(what, advice) for what, advice in found])


def _hook_problems(hook: Hook, secrets: Mapping[str, str]) -> Iterator[Tuple[str, str]]:
    """Yield the problem and the advice for each text of a hook that the secrets make invalid."""
    if hook.url is not None and not _URL.fullmatch(fill(hook.url, secrets)):
        expected = "a URL of printable ASCII characters that begins with https:// or http://"
        yield f"on.{hook.event}: expected {expected}, found another value of {_names_of(hook.url)}", "export it again"
    for name, text in hook.headers.items():
        if not _HEADER.fullmatch(fill(text, secrets)):
            found = f"found another character in {_names_of(text)}"
            yield f"on.{hook.event}: header {name}: expected printable ASCII characters, {found}", "export it again"


def _names_of(text: str) -> str:
    return " and ".join(dict.fromkeys(names_in(text)))
