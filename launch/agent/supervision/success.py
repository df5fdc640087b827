"""The success of a task, and the tasks that decide about their run.

a job               each task reports its own success; when its chief does, the run has succeeded
a foreign program   it leaves with exit code 0, and nobody has ordered it to end; the run has succeeded when
                    its ``chief`` has, or, where no task has that role, every worker. Its ps, which may
                    never leave by themselves, are then stopped as soon as the others have gone
"""

from typing import Set

from launch.agent.protocol.messages import Exited
from launch.agent.wire.run_plan import RunPlan


def deciding(plan: RunPlan) -> Set[str]:
    """Return the tasks that all have succeeded when the run has."""
    chief_decides = plan.judge == "outcome" or any(task.role == "chief" for task in plan.tasks)
    return {task.name for task in plan.tasks if task.chief or (task.role == "worker" and not chief_decides)}


def succeeded(event: Exited, judge: str, told_to_end: bool) -> bool:
    """Return whether a task has succeeded whose process ended so."""
    if judge == "exit":
        return event.exit_code == 0 and not told_to_end
    # The outcome is a task's last act: how its process went down after it does not matter.
    return bool(event.outcome and event.outcome.get("succeeded"))
