"""The parts of training beside its steps: each feature is a callback, and the trainer is a loop over them.

A callback has some of the methods of ``Callback``. It is made in the worker's graph, once that has the model and its
steps, and again with each graph that takes this one's place. ``cluster.training.worker_graph`` has all callbacks in
one list, in the order in which they act.

    fetches, note   with each step: what to fetch, and what to make of it
    open, begin     in a new session: before workers may join (chief), and when this worker has joined
    pause           between two steps of the chief
    report          when progress was reported, at most once a second
    fields          in the progress itself; warnings likewise
    end             after the last step of the chief
"""

from typing import Any, Dict, List, NamedTuple, Sequence

from cluster.protocol.outcome import Outcome


class Step(NamedTuple):
    """A step that was taken: the global step after it, and the examples of this worker's batch and their loss.

    Without examples ``loss`` has no meaning.
    """

    number: int
    loss: float
    examples: int


class Callback:
    """One feature's part in the training of a worker; a method that a callback leaves out is never called."""

    def fetches(self, step: int) -> List[Any]:
        """Return what to fetch with the step that follows ``step``; nothing for none.

        A callback that fetches has ``note``. TensorFlow places the graph again for other fetches than before: let them
        be as few kinds as possible.
        """
        return []

    def note(self, session: Any, step: Step, fetched: List[Any]) -> None:
        """Note what was fetched with a step."""

    def open(self, session: Any) -> None:
        """Prepare the servers, as the chief, before other workers may join."""

    def begin(self, session: Any) -> None:
        """Begin, when this worker has joined and before its next step."""

    def pause(self, session: Any, step: int) -> None:
        """Do what is due between two steps of the chief, after the global step ``step``."""

    def report(self, session: Any, step_time_ms: float) -> None:
        """Do what goes with a report of progress."""

    def fields(self) -> Dict[str, Any]:
        """Return fields of ``Progress``."""
        return {}

    def warnings(self) -> List[str]:
        """Return mistakes of the job's author that end no run, a sentence each."""
        return []

    def end(self, session: Any, outcome: Outcome) -> Outcome:
        """Conclude, as the chief, when no worker takes a step any more; return the outcome with what this adds."""
        return outcome


class Callbacks:
    """The callbacks of one worker, in their order, by the methods that they have: no step pays for an empty call."""

    def __init__(self, callbacks: Sequence[Callback]):
        def having(method: str) -> List[Callback]:
            return [each for each in callbacks if getattr(type(each), method) is not getattr(Callback, method)]

        self.fetching, self.opening, self.beginning = having("fetches"), having("open"), having("begin")
        self.pausing, self.reporting, self.ending = having("pause"), having("report"), having("end")
        self._with_fields, self._warning = having("fields"), having("warnings")

    def fields(self) -> Dict[str, Any]:
        """Return the fields of ``Progress`` of all callbacks."""
        found = {name: value for each in self._with_fields for name, value in each.fields().items()}
        return {**found, "warnings": [text for each in self._warning for text in each.warnings()]}
