"""The parts of training besides its steps: each feature is a callback, which the trainer's loop calls.

A callback has some of the methods of ``Callback``. A worker makes its callbacks in its graph, once the graph has the
model and its steps. It makes them again in each graph that replaces this one. ``cluster.training.worker_graph`` has all
callbacks in one list, in the order in which they act.

    fetches, note   with each step: the further fetches of a step, and the use of their values
    open, begin     in a new session: before workers may join (chief), and when this worker has joined
    pause           between two steps of the chief
    report          after each report of progress, at most once a second
    fields          the callback's fields in a report of progress; warnings likewise
    end             after the last step of the chief
"""

from typing import Any, Dict, List, NamedTuple, Sequence

from cluster.protocol.outcome import Outcome


class Step(NamedTuple):
    """A finished step: the global step after it, the loss, and the number of examples in this worker's batch.

    ``loss`` has no meaning if ``examples`` is 0.
    """

    number: int
    loss: float
    examples: int


class Callback:
    """The base class of callbacks, each for one feature of training; methods that it does not define are not called."""

    def fetches(self, step: int) -> List[Any]:
        """Return the tensors to fetch with the step that follows ``step``; [] for none.

        A callback that has this method also has ``note``. TensorFlow places the graph again for each new set of
        fetches: return as few different sets as possible.
        """
        return []

    def note(self, session: Any, step: Step, fetched: List[Any]) -> None:
        """Use ``fetched``, the values of the tensors from ``fetches`` in ``step``; [] if this worker only waited."""

    def open(self, session: Any) -> None:
        """As the chief, prepare the servers before other workers may join."""

    def begin(self, session: Any) -> None:
        """Prepare for the steps of ``session``, once this worker has joined, and before its next step."""

    def pause(self, session: Any, step: int) -> None:
        """Do the callback's work between two steps of the chief, after the global step ``step``."""

    def report(self, session: Any, step_time_ms: float) -> None:
        """Do the callback's work after a report of progress with this step time."""

    def fields(self) -> Dict[str, Any]:
        """Return the callback's fields of ``Progress``, by name."""
        return {}

    def warnings(self) -> List[str]:
        """Return a sentence for each mistake of the job's author that does not end the run."""
        return []

    def end(self, session: Any, outcome: Outcome) -> Outcome:
        """As the chief, finish after the last step of all workers; return ``outcome`` with the callback's fields."""
        return outcome


class Callbacks:
    """The callbacks of one worker, in one list for each method, so that a step calls no empty method."""

    def __init__(self, callbacks: Sequence[Callback]):
        def having(method: str) -> List[Callback]:
            return [each for each in callbacks if getattr(type(each), method) is not getattr(Callback, method)]

        self.fetching, self.opening, self.beginning = having("fetches"), having("open"), having("begin")
        self.pausing, self.reporting, self.ending = having("pause"), having("report"), having("end")
        self._with_fields, self._warning = having("fields"), having("warnings")

    def fields(self) -> Dict[str, Any]:
        """Return the fields of ``Progress`` from all callbacks, with the warnings."""
        found = {name: value for each in self._with_fields for name, value in each.fields().items()}
        return {**found, "warnings": [text for each in self._warning for text in each.warnings()]}
