"""Extensions of a model, for what it has beside variables and batches: embedding tables, examples that count once.

A function that a job calls (``embedding.lookup``, ``shards.lines``) adds its kind of extension to the graph. Whoever
builds, joins, saves or describes that graph calls the hooks of ``Extension``, and knows no kind of extension.
"""

from contextlib import contextmanager
from typing import (
    Any,
    Callable,
    ClassVar,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Type,
    TypeVar,
)

from cluster.checkpoints.row_pieces import RowsOf
from cluster.checkpoints.warm_start import WarmRows
from cluster.errors import JobError
from cluster.model.model_graph import ModelGraph
from cluster.runtime.tf_compat import tf
from cluster.steps.base_worker import BaseWorker, StepParts

_COLLECTION = "extensions"
_sources: List[Tuple[Any, Callable[[Any, Any], Any]]] = []  # graphs, and what their lookups take rows from
T = TypeVar("T")
Pairs = List[Tuple[Any, Any]]  # (gradient, variable) each


class Extension:
    """One kind of extension, in the graph of one worker. A kind overrides what it needs.

    The builder calls ``refuse``, ``claim``, ``make``, ``join``, ``worker`` and ``first_values`` in this order.

    Attributes:
      answers: settings that only this kind gives a meaning, such as "train.epochs"; ``refuse_unfit`` knows them.
      grads: the gradients by name that ``claim`` has taken.
      agreed: variables on the servers that every worker has, after ``make``.
      saved: those of them that checkpoints have as they have the model's; the chief initializes them.
      needed: more variables that must have a value before a worker can join.
      listed: other things that all workers must have alike, such as tables.
      beside: operations to run beside each step.
    """

    answers: ClassVar[Tuple[str, ...]] = ()

    def __init__(self) -> None:
        self.grads: Dict[str, Any] = {}
        self.agreed: List[Any] = []
        self.saved: List[Any] = []
        self.needed: List[Any] = []
        self.listed: List[Any] = []
        self.beside: List[Any] = []

    def refuse(self, model: ModelGraph) -> None:
        """Refuse settings of the run with which no step would be right.

        Raises:
          JobError: there are some.
        """

    def claim(self, model: ModelGraph, grads: Dict[str, Any], is_elementwise: bool) -> None:
        """Take variables out of the model's, and their gradients out of ``grads``.

        Raises:
          JobError: the model uses them in a way for which there is no right step.
        """

    def from_servers(self) -> List[Any]:
        """Return the operations of the model whose results only the servers have, before ``make`` moves them there."""
        return []

    def make(self, model: ModelGraph, step: Any, host: str, global_step: Any) -> None:
        """Add its part to the graph, once the servers have the variables.

        Args:
          step: the operations of a step.
          host: the device of the worker's memory.
          global_step: the one that counts.
        """

    def join(self, optimizer: Any, grads: Mapping[str, Any]) -> Tuple[Any, Pairs]:
        """Return the optimizer that applies its gradients too, and what to give the optimizer for these.

        Args:
          grads: those of ``self.grads``, checked for numbers.
        """
        return optimizer, []

    def worker(self, parts: StepParts) -> Optional[BaseWorker]:
        """Return the worker that takes the steps, where it is none of the usual ones."""
        return None

    def first_values(self) -> List[Any]:
        """Return operations by which the chief gives its variables their first values."""
        return [each.initializer for each in self.saved]

    def begin(self, session: Any) -> None:
        """Begin in a session: before a gradient is given in a rejoin, and when this worker has joined."""

    def saved_rows(self) -> Optional[RowsOf]:
        """Return the function that makes what saves its rows; None without rows."""
        return None

    def warm_rows(self) -> Optional[WarmRows]:
        """Return its rows as a warm start gives them values; None without rows."""
        return None

    def described(self) -> List[Dict[str, Any]]:
        """Return a description of each of its tables, with the bytes that a step moves."""
        return []

    def not_compared(self) -> List[str]:
        """Return the names of what ``launch verify`` cannot compare with one process."""
        return []


def extend(kind: Type[Extension]) -> None:
    """Add a kind of extension to the current graph, if it has none of this kind."""
    kinds = tf.get_collection_ref(_COLLECTION)
    if kind not in kinds:
        kinds.append(kind)


def extensions(graph: Any) -> List[Extension]:
    """Make the extensions of a graph, one of each kind, in the order in which they were added.

    A copy of the model finds no entries of other copies in collections. So there may be several of one kind.
    """
    return [kind() for kind in dict.fromkeys(graph.get_collection(_COLLECTION))]


def only(found: Iterable[Optional[T]]) -> Optional[T]:
    """Return the only thing that is not None; None if all are.

    Raises:
      ValueError: there are several, of which one would be lost.
    """
    some = [each for each in found if each is not None]
    if len(some) > 1:
        raise ValueError(f"expected one of the model's extensions to have it, found {some}")
    return some[0] if some else None


def refuse_unfit(model: ModelGraph, found: Sequence[Extension]) -> None:
    """Refuse settings that are wrong with an extension of the model, or have no meaning without one.

    Raises:
      JobError: there are some.
    """
    job, train = model.job, model.train
    for each in found:
        each.refuse(model)
        job.check("model", "variables alone, with train.sync: stock", type(each).__name__, train.sync != "stock")
    answered = {key for each in found for key in each.answers}
    given = {
        "train.checkpoint.delta_every_s": train.checkpoint.delta_every_s is not None,
        "train.table_staleness": train.table_staleness > 0,
    }
    for key, is_given in given.items():
        if is_given and key not in answered:
            raise JobError(f"{job.path}: expected embedding tables for {key}, found none; leave out the key")
    ok = train.epochs is None or "train.epochs" in answered
    job.check("inputs", "a dataset of cluster.shards, by which train.epochs counts", "another one", ok)


@contextmanager
def rows_from(source: Callable[[Any, Any], Any]) -> Iterator[None]:
    """Inside, lookups in the current graph take their rows from ``source``: (table, ids [n]) -> [n, width].

    Such a graph has no parameter servers, and does not train.
    """
    _sources.append((tf.get_default_graph(), source))
    try:
        yield
    finally:
        _sources.pop()


def source_of_rows() -> Optional[Callable[[Any, Any], Any]]:
    """Return what lookups in the current graph take their rows from; None for parameter servers."""
    return _sources[-1][1] if _sources and _sources[-1][0] is tf.get_default_graph() else None
