"""The parts of one worker's graph that a session needs, however the graph was built."""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Union

from cluster.model.evaluation import Evaluation
from cluster.model.shares import Shares
from cluster.recommend.once.shard_places import Places
from cluster.recommend.scoring.metric_columns import Columns
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
    variables that every worker has. ``buckets`` are the groups of variables that travel together. ``prepare`` and then
    ``start_input`` begin a session. ``examples`` is the number of examples in a step of this worker, where that number
    varies. ``shares`` is there where other workers may have more or fewer examples. ``reports`` sends the chief of
    a verified run what each worker has computed, and of what. ``tables`` holds the model's embedding tables, and
    ``measured`` the metrics that training measures. ``places`` is there where every example counts once. ``of_model``
    are those of the servers' variables that are the model's own. ``batches`` has the tensors of the batch of each task
    in the pool; none where every example counts once.
    """

    graph: Any
    stepper: Stepper
    evaluation: Optional[Evaluation]  # None for a worker that is not the chief
    placement: Placement
    layout: Layout
    global_step: Any
    variables: List[Any]
    agreed: List[Any]
    buckets: List[Bucket]
    prepare: Any
    start_input: Any
    first_values: List[Any]
    examples: Any = None
    shares: Optional[Shares] = None
    reports: Any = None
    tables: Optional[Stores] = None
    measured: Optional[Columns] = None
    places: Optional[Places] = None
    first_slots: List[Any] = field(default_factory=list)
    of_model: List[Any] = field(default_factory=list)
    batches: List[Dict[str, Any]] = field(default_factory=list)
