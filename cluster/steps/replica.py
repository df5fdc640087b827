"""What a session needs of one worker's graph, whoever has built it."""

from dataclasses import dataclass
from typing import Any, List, Optional, Union

from cluster.model.evaluation import Evaluation
from cluster.model.shares import Shares
from cluster.steps.async_worker import Asynchronous
from cluster.steps.stock import Stock
from cluster.steps.sync_worker import Synchronous
from cluster.variables.buckets import Parcel
from cluster.variables.layout import Layout
from cluster.variables.placement import Placement

Stepper = Union[Synchronous, Asynchronous, Stock]


@dataclass(frozen=True)
class Replica:
    """What a session needs of one worker's graph.

    ``first_values`` are operations that the chief runs one after the other for a run that begins. ``variables`` are
    the servers': on the chief those of a checkpoint, optimizer slots and global step included.
    ``agreed`` are those that every worker has. ``parcels`` are what travels together.
    ``prepare`` and then ``start_input`` begin a session. ``examples`` is how many a step of this worker has, where that
    varies; ``shares`` is there where other workers may have more or fewer. ``digests`` tells the chief of a run that
    is verified what each worker has computed, and with which batch.
    """

    graph: Any
    stepper: Stepper
    evaluation: Optional[Evaluation]  # None for a worker that is not the chief
    placement: Placement
    layout: Layout
    global_step: Any
    variables: List[Any]
    agreed: List[Any]
    parcels: List[Parcel]
    prepare: Any
    start_input: Any
    first_values: List[Any]
    examples: Any = None
    shares: Optional[Shares] = None
    digests: Any = None
