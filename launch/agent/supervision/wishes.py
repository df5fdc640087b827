"""An operator's wishes: tasks that formations are to leave out, and spares that are to train beside all others.

A wish stays until it is taken back, whatever happens to hosts. A new run has none.
"""

from typing import Collection, Dict, List

from launch.agent.protocol.messages import DrainRequested
from launch.agent.supervision.formation import form, shortage
from launch.agent.supervision.task_records import Roster
from launch.agent.wire.run_request import RunPlan
from launch.status.run import FormationStatus


class Wishes:
    """The wishes about one run; ``by_name`` has them as ``form`` takes them."""

    def __init__(self, plan: RunPlan, roster: Roster):
        self.by_name: Dict[str, bool] = {}
        self._plan, self._roster = plan, roster

    def restore(self, earlier: FormationStatus) -> None:
        """Take over the wishes in the status of an earlier agent."""
        self.by_name = {**dict.fromkeys(earlier.drained, False), **dict.fromkeys(earlier.added, True)}

    def named(self, wish: bool) -> List[str]:
        """Return the tasks of which this is wished."""
        return sorted(name for name, wished in self.by_name.items() if wished is wish)

    def joined_by(self, request: DrainRequested) -> Dict[str, bool]:
        """Return the wishes, and those of a request, by name."""
        others = {name: wish for name, wish in self.by_name.items() if name not in request.tasks}
        spares = [name for name in request.tasks if self._roster.by_name[name].plan.spare]
        return {**others, **dict.fromkeys(spares if request.back else request.tasks, request.back)}

    def refusals(self, request: DrainRequested, out: Collection[str]) -> List[str]:
        """Return why the tasks of a request cannot be drained, or train again; empty where they can.

        Args:
          out: the hosts that are not there.
        """
        tasks = [self._roster.by_name[name].plan for name in request.tasks]
        wrong = [f"{each.name} is the chief, which leads the run; choose others" for each in tasks if each.chief]
        wrong += [f"{each.name}: expected a ps or a worker" for each in tasks if each.role == "evaluator"]
        wished = self.joined_by(request)
        if wrong or wished == self.by_name:
            state = "trains already" if request.back else "is drained already"
            return wrong or [f"{each.name} {state}" for each in tasks]
        missing = shortage(form(0, self._plan.tasks, out, wished), self._plan.tasks, self._plan.min_workers or 0)
        return [] if missing is None else [missing]
