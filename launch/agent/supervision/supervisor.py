"""The supervisor of a run, which decides the next orders from events and time.

The supervisor touches no process, socket or clock. ``handle(event, now)`` takes an event and returns the orders that
follow; the agent carries them out. So tests can replay histories to check every rule.

The supervisor is a loop over its rules; ``run_state`` has the interface of a rule, and the phases of a run.
``launch.status.run`` names the states of tasks, and ``ending`` decides which tasks have succeeded.
"""

from typing import Any, List, Sequence

from launch.agent.protocol.messages import (
    DrainRequested,
    Event,
    KillRequested,
    Order,
    RestartRequested,
    Stop,
    StopRequested,
)
from launch.agent.supervision.agents import Gathering, HostEvents
from launch.agent.supervision.departures import Departures
from launch.agent.supervision.elastic import Formations
from launch.agent.supervision.ending import Deadline, Ending, Success
from launch.agent.supervision.hang_detection import Watch
from launch.agent.supervision.learning_curve import LearningCurve
from launch.agent.supervision.program_steps import ProgramSteps
from launch.agent.supervision.quietness import Quietness
from launch.agent.supervision.restart_policy import Restarts
from launch.agent.supervision.run_state import SupervisedRun, SupervisionRule
from launch.agent.supervision.split_checkpoints import SplitCheckpoints
from launch.agent.supervision.status import run_status
from launch.agent.supervision.task_events import CheckpointProblems, GpuFailures, TaskEnds, TaskEvents
from launch.agent.supervision.together import Together
from launch.agent.wire.run_request import RunPlan
from launch.status.run import RunStatus


class Supervisor(SupervisedRun):
    """The rules of one run, and their shared knowledge.

    Args:
      resume: the command that continues the run after a stop.
    """

    def __init__(self, plan: RunPlan, resume: str = "launch up --resume FILE"):
        super().__init__(plan)
        self.now = 0.0  # of the last event
        self.formations = Formations(self)
        self.program_steps = ProgramSteps(self)
        self.departures = Departures(self, self.formations, resume)
        ending, restarts = Ending(self), Restarts(self, self.formations)
        self.rules: Sequence[SupervisionRule] = (
            Watch(self),  # before any event changes the state: it counts the time for which the lead itself has run
            # The meaning of an event. Checkpoint problems come before the steps of the same report: steps that a
            # restore passed over are already lost when the chief reports its first step.
            CheckpointProblems(self),
            self.program_steps,  # before the steps of the same report are taken for a return to a checkpoint
            TaskEvents(self),
            GpuFailures(self, self.formations),
            HostEvents(self, self.formations, self.departures, restarts),
            SplitCheckpoints(self),  # before the ends of tasks: an end that was ordered proves nothing
            TaskEnds(self, self.formations, restarts, ending),
            LearningCurve(self, self.formations),  # after the steps and ends that it records
            Requests(self, self.formations, self.departures, restarts),
            Quietness(self),  # after the ends and restarts of tasks: it names only tasks that are there
            self.departures,  # after an operator's request of the same moment, which may close the run
            # The consequences of the state, in the order of the phases: one phase may end, and the next begin, with the
            # same event. Success comes before any rule that starts a task.
            Success(self, self.formations),
            Deadline(self, resume),  # a run that succeeds at its deadline has succeeded
            Gathering(self, self.formations),
            self.formations,
            Together(self, self.formations, restarts),  # before the restarts that it holds
            restarts,  # after the formations: a formation that ends restarts no task
            ending,  # last: once any rule has closed the run, the tasks end from this moment on
        )

    def handle(self, event: Event, now: float) -> List[Order]:
        """Process one event, and return the orders that follow from it."""
        self.now = now
        self.incidents.effective.begin(now)
        return [order for rule in self.rules for order in rule.handle(event, now)]

    def status(self, **more: Any) -> RunStatus:
        """Return the run's status; ``more`` are fields that the supervisor does not know."""
        return run_status(self, self.formations, self.now, departed=self.departures.needed, **more)


class Requests(SupervisionRule):
    """The rule for requests to restart or drain tasks or to end the run, by an operator or an expired lease."""

    def __init__(self, run: SupervisedRun, formations: Formations, departures: Departures, restarts: Restarts):
        super().__init__(run)
        self._formations, self._departures, self._restarts = formations, departures, restarts

    def handle(self, event: Event, now: float) -> List[Order]:
        """Return the orders that follow from a request."""
        if isinstance(event, RestartRequested):
            return self._restarts.recall(event.tasks, now)
        if isinstance(event, DrainRequested):
            if event.back:
                self._departures.discard(event.tasks)
            return self._formations.drain(event, now)
        if isinstance(event, StopRequested):
            return self._run.stop(event.reason, now)
        if isinstance(event, KillRequested):
            self._run.close("stopped", event.reason, now)
            self._run.saving.skip()
            return [Stop(task.plan.name, 0.0, task.attempt) for task in self._run.roster.live_tasks()]
        return []
