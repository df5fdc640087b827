"""Ask every host: build each request from a plan, and hold all conversations in parallel under one deadline.

In this package, only this module contacts hosts. It opens one connection to each host.
"""

import os
import time
from collections import defaultdict
from dataclasses import replace
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from cluster.protocol.addresses import port_of
from cluster.protocol.env_values import with_names
from cluster.protocol.typed_json import to_values
from launch.agent.wire.check_request import CheckFacts, CheckRequest, OpenedPorts
from launch.agent.wire.host_facts import Clock, FactsRequest
from launch.agent.wire.run_request import TaskRequest
from launch.agent.wire.verb_requests import RunReference
from launch.check.ways import dials
from launch.errors import HostProblem
from launch.fleet import Fleet
from launch.hosts.answer_shapes import TIME
from launch.hosts.channel import Host
from launch.hosts.conversation import Conversation
from launch.plan.plan import Plan

KNOCK_S = 5.0  # for one address to answer, even after two lost packets


def requests(plan: Plan, words: Sequence[str], deadline_s: float) -> Dict[str, CheckRequest]:
    """Return the request to every host of a plan.

    Args:
      words: two secrets of this check: a caller sends the first, and our listener answers with the second.
      deadline_s: the seconds after which a host ends its check by itself.
    """
    tasks: Dict[str, List[TaskRequest]] = defaultdict(list)
    for task in plan.tasks:
        tasks[task.host].append(task)
    local = tuple(host for host in plan.hosts if plan.spec.is_here(host))
    dialled = dials(plan)
    return {
        host: CheckRequest(
            run=RunReference(plan.spec.name, host, plan.spec.workdir), words=tuple(words), within_s=deadline_s,
            ports=_ports(plan, host, tasks[host]), here=local if host in local else (host,),
            facts=_facts(plan, host, tasks[host]), names=dialled[host].names, targets=dialled[host].targets,
            knock_s=min(KNOCK_S, deadline_s / 4), guard=plan.spec.guard is not None,
            limits={each.name: each.limits for each in tasks[host] if each.limits is not None},
            programs=_programs(plan, host, tasks[host]),
        )
        for host in plan.hosts
    }  # fmt: skip


def _ports(plan: Plan, host: str, tasks: Sequence[TaskRequest]) -> Tuple[int, ...]:
    control = [port_of(plan.control)] if plan.control is not None and host == plan.lead else []
    return (*(task.port for task in tasks), *control)


def _programs(plan: Plan, host: str, tasks: Sequence[TaskRequest]) -> Dict[str, Optional[str]]:
    """Return each program that the host must have, with the PATH to search; None for the host's own PATH."""
    programs: Dict[str, Optional[str]] = dict.fromkeys(agent_programs(plan, host))
    if plan.spec.container is None:  # otherwise the image has the programs
        programs.update({task.argv[0]: with_names(task.env, "PATH") for task in tasks})
    return {program: path for program, path in programs.items() if _is_looked_for(program)}


def agent_programs(plan: Plan, host: str) -> Dict[str, str]:
    """Return the programs that a host's agent runs besides tasks, each with the key that names it (on, notice)."""
    hooks = {hook.command[0]: "on" for hook in plan.spec.hooks if hook.command and host == plan.lead}
    return {**hooks, **({plan.spec.notice.command[0]: "notice"} if plan.spec.notice else {})}


def _facts(plan: Plan, host: str, tasks: Sequence[TaskRequest]) -> FactsRequest:
    """Return the request for the facts that matter to the host's tasks."""
    asked = next((task for task in tasks if task.role != "ps"), tasks[0])
    workdir, checkpoints = plan.spec.workdir, plan.spec.train.checkpoint.dir
    folders = (workdir, checkpoints) if checkpoints and host == plan.lead else (workdir,)
    environment = plan.environments.get(host)
    python, variables = plan.python[host], _own_variables(asked)
    return FactsRequest(workdir, python, environment, variables, folders, trial=True, container=plan.spec.container)


def _own_variables(task: TaskRequest) -> Dict[str, str]:
    """Return the variables of a task that may affect an import."""
    return {name: value for name, value in task.env.items() if not name.startswith(("LAUNCH_", "CUDA_"))}


def _is_looked_for(program: str) -> bool:
    """Return whether the host itself must have a program.

    A path within the job's folder is shipped with that folder.
    """
    return not os.path.dirname(program) or program.startswith(("/", "~"))


def shipped_programs(plan: Plan) -> List[str]:
    """Return the programs of ``command:``, ``on`` and ``notice`` that are shipped in the job's folder."""
    own = [plan.tasks[0].argv[0]] if plan.spec.container is None else []
    programs = dict.fromkeys([*own, *agent_programs(plan, plan.lead)])
    return [program for program in programs if not _is_looked_for(program)]


OPENING_SHARE = 0.5  # share of the deadline in which every host must connect and listen
LOOK_SHARE = 0.8  # share of the remaining time in which a host collects its facts
CLOCK_READINGS = 5

Answers = Tuple[Dict[str, CheckFacts], List[HostProblem]]


def interview(fleet: Fleet, requests: Mapping[str, CheckRequest], deadline_s: float) -> Answers:
    """Ask all hosts within the deadline; return the facts of those that answered, and the problems of the others.

    Hosts that listen in time do not wait for late hosts. Listeners close only after every host has tried to connect.

    Raises:
      Interrupted: a signal came.
    """
    until = time.monotonic() + deadline_s
    talking: Dict[str, Conversation] = {}

    def begin(host: Host) -> Tuple[OpenedPorts, Clock]:
        host.connect()
        talking[host.name] = conversation = fleet.contact(host.name, "check", to_values(requests[host.name]))
        left_s = until - time.monotonic()
        return conversation.record(OpenedPorts, left_s), read_clock(conversation, left_s)

    def look(host: Host) -> CheckFacts:
        left_s = max(0.0, until - time.monotonic())
        conversation = talking[host.name]
        conversation.send({"do": "look", "within_s": LOOK_SHARE * left_s})
        opened, clock = opening[host.name]
        return replace(conversation.record(CheckFacts, left_s), ports=opened.ports, clock=clock)

    try:
        opening, late = fleet.each(begin, list(requests), timeout_s=OPENING_SHARE * deadline_s)
        facts, later = fleet.each(look, list(opening), timeout_s=until - time.monotonic())
    finally:
        for conversation in list(talking.values()):
            conversation.close()
    return facts, [*late, *later]


def read_clock(conversation: Conversation, timeout_s: float) -> Clock:
    """Measure by how much a host's clock is ahead of ours.

    As in NTP, the host reads its clock between our question and its answer. So the reading with the shortest round trip
    is the most exact.
    """
    readings = (_reading(conversation, timeout_s) for _ in range(CLOCK_READINGS))
    return min(readings, key=lambda reading: reading.error_s)


def _reading(conversation: Conversation, timeout_s: float) -> Clock:
    asked, began = time.time(), time.monotonic()
    conversation.send({"do": "time"})
    there = conversation.answer(timeout_s, TIME)["time"]
    half_s = (time.monotonic() - began) / 2
    return Clock(round(there - asked - half_s, 6), round(half_s, 6))
