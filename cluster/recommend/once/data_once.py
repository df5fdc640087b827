"""The graph extension for training in which every example counts exactly once."""

from typing import Any, List, Optional

from cluster.model.job_results import SOURCES
from cluster.model.model_graph import ModelGraph
from cluster.recommend.once.async_once import OnceAsyncWorker
from cluster.recommend.once.once_steps import OnceWorker
from cluster.recommend.once.own_places import OwnPlaces
from cluster.recommend.once.shard_places import Places
from cluster.recommend.once.source import Source
from cluster.runtime.tf_compat import tf
from cluster.steps.base_worker import BaseWorker, HoldGate, StepParts
from cluster.steps.extension import Extension


def note_source(source: Source) -> None:
    """Note that a dataset of the current graph gets its batches from ``source``."""
    tf.add_to_collection(SOURCES, source)


def sources(graph: Any) -> List[Source]:
    """Return the source of each dataset of ``cluster.shards`` in ``graph``."""
    return list(graph.get_collection(SOURCES))


class DataOnce(Extension):
    """The extension for a model whose dataset consists of shards; the servers store the progress of each shard."""

    answers = ("train.epochs",)

    def __init__(self) -> None:
        super().__init__()
        self._sources = sources(tf.get_default_graph())
        self._places: Any = None

    def refuse(self, model: ModelGraph) -> None:
        """Refuse a model with which some examples of ``cluster.shards`` would be trained twice or never.

        Raises:
          JobError: a setting of ``model``, or its use of the dataset, would cause this.
        """
        job, train = model.job, model.train
        settings = {
            "train.sync: stock": train.sync == "stock",
            "train.backup_workers": train.backup_workers > 0,
            "train.replication: in-graph": train.replication == "in-graph",
        }
        for name, is_so in settings.items():
            job.check("inputs", f"a dataset without shards, required by {name}", "one of cluster.shards", not is_so)
        found = f"{len(self._sources)} datasets of cluster.shards"
        job.check("inputs", "one dataset of cluster.shards", found, len(self._sources) == 1)
        arrive = any(source.reader.sample is not None for source in self._sources)
        ok = train.epochs is None or not arrive
        job.check("inputs", "files that are there already, required by train.epochs", "files that arrive", ok)
        is_whole = model.place is not None
        job.check("inputs", "the dataset of cluster.shards, unchanged", "a changed dataset of cluster.shards", is_whole)

    def make(self, model: ModelGraph, step: Any, host: str, global_step: Any) -> None:
        """Create the variables, on the servers, that store the progress of each shard."""
        kind = OwnPlaces if model.train.mode == "async" else Places
        self._places = kind(self._sources[0], model.place, model.task, global_step, model.train.epochs)
        self.agreed = self.saved = self._places.saved
        self._task = model.task

    def worker(self, parts: StepParts) -> Optional[BaseWorker]:
        """Return the object that takes the steps of this worker, which advance the progress of the shards."""
        if isinstance(self._places, OwnPlaces):
            return OnceAsyncWorker(parts, HoldGate(self._task), self._places)
        return OnceWorker(parts, self._places)
