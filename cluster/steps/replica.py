"""The parts of one worker's graph that a session needs, however the graph was built."""

from dataclasses import dataclass, field
from typing import Any, List, Optional, Sequence

from cluster.checkpoints.row_pieces import RowsOf
from cluster.checkpoints.warm_start import WarmRows
from cluster.model.model_graph import ModelGraph
from cluster.steps.base_worker import BaseWorker
from cluster.steps.extension import Extension, only
from cluster.variables.layout import Bucket, Layout
from cluster.variables.placement import Placement


@dataclass(frozen=True)
class Replica:
    """The parts of one worker's graph that a session needs.

    For a new run, the chief runs the operations ``first_values`` and then ``first_slots``, one after the other.
    ``first_slots`` initialize the optimizer's variables. ``variables`` are the servers' variables: on the chief all
    variables of a checkpoint, with the optimizer's slots and the global step. ``agreed`` are the variables in every
    worker's graph. ``buckets`` are the groups of variables that travel together. ``examples`` is the number of examples
    in a step of this worker; None where that number is fixed. ``reports`` sends each worker's digests of its batch and
    gradients to the chief of a verified run; None in other runs. ``extensions`` are the model's extensions.
    ``of_model`` are the servers' variables that belong to the model itself.
    """

    graph: Any
    model: ModelGraph
    stepper: BaseWorker
    placement: Placement
    layout: Layout
    global_step: Any
    variables: List[Any]
    agreed: List[Any]
    buckets: List[Bucket]
    first_values: List[Any]
    examples: Any = None
    reports: Any = None
    extensions: Sequence[Extension] = ()
    first_slots: List[Any] = field(default_factory=list)
    of_model: List[Any] = field(default_factory=list)

    @property
    def saved_rows(self) -> Optional[RowsOf]:
        """Return the function that creates the ``SavedRows`` of the model's tables; None without tables."""
        return only(each.saved_rows() for each in self.extensions)

    def warm_rows(self) -> Optional[WarmRows]:
        """Return the model's tables, in the form that a warm start can fill; None without tables."""
        return only(each.warm_rows() for each in self.extensions)
