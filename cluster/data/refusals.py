"""Refuse, before training, what cannot be done right with shards."""

from typing import Sequence

from cluster.data.source import Source
from cluster.job import Job
from cluster.task import Train


def refuse(job: Job, train: Train, sources: Sequence[Source], has_place: bool) -> None:
    """Refuse shards that are used in a way, or with settings, for which examples would not count once.

    Args:
      sources: of all datasets of shards that ``inputs`` made.
      has_place: whether its batches have their place in a shard.

    Raises:
      JobError: they are, or ``train.epochs`` has nothing to count by.
    """
    if not sources:
        expected = "a dataset of cluster.shards, by which train.epochs counts"
        job.check("inputs", expected, "another one", train.epochs is None)
        return
    settings = {
        "train.sync: stock": train.sync == "stock",
        "train.backup_workers": train.backup_workers > 0,
        "train.replication: in-graph": train.replication == "in-graph",
    }
    for name, is_so in settings.items():
        job.check("inputs", f"a dataset of its own with {name}", "one of cluster.shards", not is_so)
    found = f"{len(sources)} datasets of cluster.shards"
    job.check("inputs", "one dataset of cluster.shards", found, len(sources) == 1)
    job.check("inputs", "the dataset of cluster.shards as it is", "another made of it", has_place)
