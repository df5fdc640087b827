"""Runs that a launcher begins by itself, after one whose chief's host it has lost: they do not meet those before."""

from typing import Any, List

from launch.agent.service.lead import Lead
from launch.agent.wire.run_request import GRACE_S, LOST_S, RunPlan
from launch.plan.agent_requests import ELASTIC_STAY_S
from tests.simulation.promises import BOUND_S, DIALS_S, Broken

FORMER_S = LOST_S + 2 * GRACE_S + 5.0  # for tasks that others cannot reach to end, after the successor begins
FORMER_LEAVES_S = LOST_S + ELASTIC_STAY_S + DIALS_S  # for agents of the former run that reach no lead
FOLLOWS = "continuing without "
PAUSES = {"ctrl-z", "stopped launcher"}  # after these the lead may wait for the launcher without end


class Successions:
    """The successors of one history.

    Attributes:
      began_at: the time at which the newest one began; 0 without any.
      run: the name of the newest one.
    """

    def __init__(self, world: Any):
        self._world = world
        self.began_at, self.run = 0.0, ""

    def begins(self, up: Any, plan: RunPlan) -> None:
        """A successor begins: look at the run before, which is the world's yet."""
        world = self._world
        self.began_at, self.run = world.agenda.now, plan.run
        left_out = [host for host in world.plan.hosts if host not in plan.hosts]
        self._the_lease_is_over()
        if world.lead_host in plan.hosts:
            world.fail(f"I8: the host of the chief, {world.lead_host}, was lost, and has a part in the successor")
        unnamed = [host for host in left_out if not any(line.startswith(f"{host}: ") for line in self._shown(up))]
        if up.unprinted is None and any(host != world.lead_host for host in unnamed):
            world.fail(f"I8: the successor leaves out {', '.join(unnamed)}, and nothing says why")

    def _the_lease_is_over(self) -> None:
        """I1: the former lead ends its run, if it does anything yet; so its chief does not train on.

        A restarted lead has no lease before its launcher has answered it. A task that it starts then is not excused.
        """
        world, lead, supervisor = self._world, self._world.lead, self._world.supervisor()
        acts = supervisor is not None and lead.has_agent and not lead.is_stopped and lead.life.agent._has_go
        if acts and not supervisor.state.is_closing and lead.host not in world.woken_lately():
            world.fail(f"I1: a successor begins on other hosts, and the lead on {lead.host} has its lease yet")

    def excuses(self, process: Any) -> bool:
        """Return whether a process may act beside the successor: it ends, where the launcher could not reach it."""
        world = self._world
        if process.host in world.plan.hosts or world.agenda.now > self.began_at + FORMER_S:
            return False
        life = world.machines[process.host].life
        return life is None or not isinstance(life.agent, Lead) or bool(life.agent._supervisor.state.is_closing)

    def look(self) -> None:
        """I7: the agents of a former run leave by themselves, once nothing is in their way."""
        world = self._world
        for host, machine in world.machines.items():
            if machine.folder.run == world.run_name or not machine.has_agent or machine.is_stopped:
                continue
            since = max(self.began_at, world.healed_at, world.woken_at.get(host, 0.0), machine.led_since or 0.0)
            bound_s = BOUND_S if isinstance(machine.life.agent, Lead) else FORMER_LEAVES_S
            if self.began_at and world.agenda.now > since + bound_s:
                raise Broken(f"I7: {bound_s:.0f} s after a successor began, {host} has an agent of the run before")

    def is_none_missing(self, up: Any) -> None:
        """I12: where a launcher has lost the chief's host, a successor follows if enough others answered."""
        world = self._world
        named = [host for host in world.plan.hosts if any(line.startswith(f"{host}: ") for line in self.lines(up))]
        left = {task.role for task in world.plan.tasks if task.host not in {world.lead_host, *named}}
        is_asked = up.interrupted_at is not None or world.kinds & PAUSES
        if world.shape.replicas and left == {"ps", "worker"} and not is_asked:
            raise Broken(f"I12: {world.lead_host} was lost, enough hosts are left, and no run follows")

    def lines(self, up: Any) -> List[str]:
        """Return what a launcher has shown of its last run."""
        return self._parts(up)[-1]

    def lines_of_present(self, up: Any) -> List[str]:
        """Return what a launcher has shown of the present run; its last may be a successor that no host has begun."""
        begins = f" s] {self._world.run_name}: "
        return next((part for part in self._parts(up) if any(begins in line for line in part)), [])

    def _parts(self, up: Any) -> List[List[str]]:
        """Return what a launcher has shown, run by run."""
        parts: List[List[str]] = [[]]
        for line in self._shown(up):
            if line.startswith(FOLLOWS):
                parts.append([])
            parts[-1].append(line)
        return parts

    @staticmethod
    def _shown(up: Any) -> List[str]:
        return list(up.shown) if up is not None else []
