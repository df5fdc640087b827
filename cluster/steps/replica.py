"""The parts of one worker's graph that a session needs, however the graph was built."""

from dataclasses import dataclass, field
from typing import Any, List, Optional, Union

from cluster.model.model_graph import ModelGraph
from cluster.recommend.once.shard_places import Places
from cluster.recommend.tables.stores import Stores
from cluster.steps.async_worker import AsyncWorker
from cluster.steps.stock_worker import StockWorker
from cluster.steps.sync_worker import SyncWorker
from cluster.variables.layout import Bucket, Layout
from cluster.variables.placement import Placement

Stepper = Union[SyncWorker, AsyncWorker, StockWorker]


@dataclass(frozen=True)
class Replica:
    """The parts of one worker's graph that a session needs.

    ``first_values`` and then ``first_slots`` are operations that the chief runs one after the other for a run that
    begins; the latter are of what the optimizer keeps. ``variables`` are the servers' variables:
    on the chief those of a checkpoint, optimizer slots and global step included. ``agreed`` are the
    variables that every worker has. ``buckets`` are the groups of variables that travel together. ``examples`` is the
    number of examples in a step of this worker, where that number varies. ``reports`` sends the chief of
    a verified run what each worker has computed, and of what. ``tables`` holds the model's embedding tables. ``places``
    is there where every example counts once. ``of_model`` are those of the servers' variables that are the model's own.
    """

    graph: Any
    model: ModelGraph
    stepper: Stepper
    placement: Placement
    layout: Layout
    global_step: Any
    variables: List[Any]
    agreed: List[Any]
    buckets: List[Bucket]
    first_values: List[Any]
    examples: Any = None
    reports: Any = None
    tables: Optional[Stores] = None
    places: Optional[Places] = None
    first_slots: List[Any] = field(default_factory=list)
    of_model: List[Any] = field(default_factory=list)
