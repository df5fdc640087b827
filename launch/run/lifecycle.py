"""One run: start it, follow it, take it down, and print how it ended."""

from dataclasses import replace
from datetime import datetime, timezone
from typing import Callable, List, NamedTuple, Optional, Sequence

from cluster.protocol.quantity import quantity
from launch.errors import SUCCEEDED
from launch.fleet import Fleet
from launch.logs.task_logs import print_log_of_culprit
from launch.plan.plan import Plan
from launch.run.agent_restarts import AgentRestarts
from launch.run.attached import Attached
from launch.run.draft import Draft, RunStart, draft, fragile, with_generation, with_returns
from launch.run.graph_check import GraphCheck, is_useful
from launch.run.resume import bring_newest
from launch.run.start import advising, start_agents
from launch.signals import Interrupts
from launch.status.run import RunStatus
from launch.target import Target, remember
from launch.teardown import failures, in_lines, take_down
from launch.view import run_end
from launch.view.console import fold, say
from launch.view.plain_view import View

Ending = Callable[[RunStatus], List[str]]  # the last lines of a run, from its status


class Ended(NamedTuple):
    """The end of a run, or the state in which the launcher left the run.

    Attributes:
      code: the launcher's exit code.
      status: the run's last status.
      lead_lost_at: the time at which the launcher last received from a lost lead, by ``time.monotonic()``; else None.
      out_of_reach: the hosts that could not be asked whether anything is left there.
    """

    code: int
    status: RunStatus
    lead_lost_at: Optional[float] = None
    out_of_reach: Sequence[str] = ()


def train(target: Target, start: RunStart, interrupts: Interrupts, ending: Ending) -> Ended:
    """Start a run, follow it to its end or until it is up, take it down, and print how it ended.

    Raises:
      LaunchError: it cannot start.
    """
    from launch.view.live_view import for_terminal  # launch.cli has loaded it; the Tab key does not need it

    planned = draft(target, start, datetime.now(timezone.utc))
    # The successor of a run that has trained, which alone needs no checkpoint, does not wait for its graph.
    useful = is_useful(start.spec) and start.needed
    graph = GraphCheck(planned.plan, planned.code, target.job(start.spec), useful)
    # The graph's process begins before the fleet loads what it needs for SSH.
    with graph, Fleet(start.spec, planned.plan.python, planned.code, interrupts) as fleet:
        with for_terminal() as view:
            run = _start(fleet, planned, target, start, view, graph)
            attached = Attached(fleet, run.plan, view, interrupts, AgentRestarts(fleet, run.requests), start.detach)
            status = attached.follow(attached.go())
        if status.state == "running":
            resumes = start.spec.command is None
            ends = [] if fleet.slurm_job else [(_described(run.plan, hosts), why) for hosts, why in run.fragile]
            say(*run_end.detached(run.plan.run, str(target), ends, resumes, fleet.slurm_job))
            return Ended(SUCCEEDED, status)
        out_of_reach = _take_down(fleet, run.plan, status, ending)
    return Ended(run_end.exit_code(status, interrupts.received), status, attached.lead_lost_at, out_of_reach)


def _described(plan: Plan, hosts: Sequence[str]) -> str:
    return "this machine" if all(map(plan.spec.is_here, hosts)) else fold(hosts)


def _start(fleet: Fleet, planned: Draft, target: Target, start: RunStart, view: View, graph: GraphCheck) -> Draft:
    """Connect to every host, name the run, bring the checkpoint that it resumes from, and start its agents.

    Returns:
      the draft whose requests the agents got.
    """
    where = ", which are this machine (--local)" if start.spec.local else ""
    view.note(f"{planned.plan.run}: {quantity(len(planned.plan.tasks), 'task')} on {fold(planned.plan.hosts)}{where}")
    with advising(str(target), planned.plan.hosts):
        fleet.connect()
        run = _named(fleet, planned, view, start.detach)
        if start.resume:
            asked = bring_newest(fleet, run.plan, run.requests, view.note, start.needed, start.source)
            run = replace(run, requests=asked)
        for line in start_agents(fleet, run.requests, graph):
            view.note(line)
        remember(start.spec, run.plan.run)
    return run


def _named(fleet: Fleet, planned: Draft, view: View, detach: bool) -> Draft:
    """Number the run's generation, under a name that no run of any host has; with ``detach`` prepare for reboots."""
    numbered = with_generation(fleet, planned.requests)
    while not numbered.is_free:
        planned = planned.a_second_later()
        view.note(f"renamed to {planned.plan.run}, because another run started in the same second")
        numbered = with_generation(fleet, planned.requests)
    if not detach:
        return replace(planned, requests=numbered.requests)
    returning = with_returns(planned.plan, numbered.requests, numbered.boot_obstacles)
    return replace(planned, requests=returning, fragile=fragile(planned.plan, numbered.boot_obstacles))


def _take_down(fleet: Fleet, plan: Plan, status: RunStatus, ending: Ending) -> List[str]:
    """End what is left of the run, print how it ended, and return the hosts that are out of reach."""
    left = take_down(
        fleet,
        {host: fleet.reference(host, run=plan.run) for host in plan.hosts},
        reason="the run is over",
        interruptible=False,
    )
    print_log_of_culprit(fleet, status, say)
    say(*(failures(left) if left.clean else in_lines(left)), *ending(status))
    return [problem.host for problem in left.problems]
