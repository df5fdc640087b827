"""Describe in a line what a worker is about to do, and what each of its steps exchanges with each ps."""

from collections import Counter
from typing import List, Optional, Sequence

from cluster.model.device_pool import Member
from cluster.protocol.flight_records import Exchange
from cluster.protocol.quantity import quantity
from cluster.steps.replica import Replica
from cluster.task import Train
from cluster.variables.placement import Placement, imbalance


def description(pool: Sequence[Member], settings: Train, placement: Placement, slices: Optional[int]) -> str:
    """Return the settings, the end, and the size of a worker's training.

    Args:
      slices: of each large variable; None or 0 for whole ones.
    """
    held = placement.bytes_per_server()
    towers = sum(len(member.devices) for member in pool)
    cut = f", in {quantity(slices, 'slice')} each" if slices else ""
    return (
        f"{settings.mode}, {settings.replication}, {_end(settings)},"
        f" {quantity(pool[0].task.num_workers, 'worker')},"
        f" {quantity(towers, 'tower')} of batch {settings.tower_batch_size} here;"
        f" {sum(held):,} bytes of variables"
        f" on {len(held)} ps (the fullest holds {imbalance(held):.2f} of the mean){cut}"
    )


def _end(settings: Train) -> str:
    epochs = [f"for {quantity(settings.epochs, 'epoch')}"] if settings.epochs else []
    steps = [f"to step {settings.steps}"] if settings.steps else []
    return ", at most ".join([*epochs, *steps])


def exchanges(replica: Replica) -> List[Exchange]:
    """Return what a step pushes to each ps and pulls from it: buckets, or without them one variable by the other."""
    servers = replica.placement.servers
    pushes = Counter([bucket.server for bucket in replica.buckets] or servers.values())
    return [Exchange(pushes[ps], held) for ps, held in enumerate(replica.placement.bytes_per_server())]
