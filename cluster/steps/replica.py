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

    ``first_values`` and then ``first_slots`` are operations that the chief runs one after the other for a run that
    begins; the latter are of what the optimizer keeps. ``variables`` are the servers' variables:
    on the chief those of a checkpoint, optimizer slots and global step included. ``agreed`` are the
    variables that every worker has. ``buckets`` are the groups of variables that travel together. ``examples`` is the
    number of examples in a step of this worker, where that number varies. ``reports`` sends the chief of
    a verified run what each worker has computed, and of what. ``extensions`` are those of the model. ``of_model`` are
    those of the servers' variables that are the model's own.
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
        """Return the function that makes what saves rows of tables; None without tables."""
        return only(each.saved_rows() for each in self.extensions)

    def warm_rows(self) -> Optional[WarmRows]:
        """Return the tables as a warm start gives them rows; None without tables."""
        return only(each.warm_rows() for each in self.extensions)
