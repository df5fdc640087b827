"""Extensions of a model beyond plain variables and batches: embedding tables, data whose examples count once.

A function that a job calls (``embedding.lookup``, ``shards.lines``) adds its kind of extension to the graph. The code
that builds, joins, saves or describes that graph calls the hooks of ``Extension``, and knows no kind of extension.
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
    """One kind of extension, in the graph of one worker. A kind overrides the methods that it needs.

    The builder calls ``refuse``, ``claim``, ``make``, ``join``, ``worker`` and ``first_values`` in this order.

    Attributes:
      answers: settings that have a meaning only with this kind, such as "train.epochs"; ``refuse_unfit`` checks them.
      grads: the gradients that ``claim`` has taken, by name.
      agreed: the extension's variables on the servers that are in every worker's graph; set by ``make``.
      saved: the variables in ``agreed`` that checkpoints save like the model's; the chief initializes them.
      needed: further variables that must have a value before a worker can join.
      listed: further objects that must be equal on all workers, such as tables.
      beside: operations that run together with each step.
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
        """Refuse settings of the run with which this extension's steps would be wrong.

        Raises:
          JobError: the run has such a setting.
        """

    def claim(self, model: ModelGraph, grads: Dict[str, Any], is_elementwise: bool) -> None:
        """Remove the extension's variables from those of ``model``, and their gradients from ``grads``.

        Raises:
          JobError: the model uses these variables in a way that would make steps wrong.
        """

    def from_servers(self) -> List[Any]:
        """Return the model's operations whose results only the servers have; call this method before ``make``."""
        return []

    def make(self, model: ModelGraph, step: Any, host: str, global_step: Any) -> None:
        """Add the extension's part to the graph, once the graph has the servers' variables.

        Args:
          step: the operations of a step.
          host: the device of the worker's memory.
          global_step: the servers' global step.
        """

    def join(self, optimizer: Any, grads: Mapping[str, Any]) -> Tuple[Any, Pairs]:
        """Return an optimizer that also applies the extension's gradients, and those as (gradient, variable) pairs.

        Args:
          optimizer: applies all other gradients.
          grads: the gradients of ``self.grads``, after the check for values that are not finite.
        """
        return optimizer, []

    def worker(self, parts: StepParts) -> Optional[BaseWorker]:
        """Return this kind's own worker, which takes the steps of ``parts``; None if the usual worker takes them."""
        return None

    def first_values(self) -> List[Any]:
        """Return the operations with which the chief initializes the extension's variables."""
        return [each.initializer for each in self.saved]

    def begin(self, session: Any) -> None:
        """Prepare for steps in ``session``: called before a rejoin sends a gradient, and again after joining."""

    def saved_rows(self) -> Optional[RowsOf]:
        """Return the function that creates the ``SavedRows`` of the extension's tables; None without tables."""
        return None

    def warm_rows(self) -> Optional[WarmRows]:
        """Return the extension's tables, in the form that a warm start can fill; None without tables."""
        return None

    def described(self) -> List[Dict[str, Any]]:
        """Return a description of each of the extension's tables, with the bytes that a step moves."""
        return []

    def not_compared(self) -> List[str]:
        """Return the names of the values that ``launch verify`` cannot compare with one process."""
        return []


def extend(kind: Type[Extension]) -> None:
    """Add ``kind``, a kind of extension, to the current graph, unless the graph already has it."""
    kinds = tf.get_collection_ref(_COLLECTION)
    if kind not in kinds:
        kinds.append(kind)


def extensions(graph: Any) -> List[Extension]:
    """Make the extensions of ``graph``, one of each kind, in the order in which the kinds were added.

    Each copy of the model sees only its own entries of collections. So the graph may list a kind several times.
    """
    return [kind() for kind in dict.fromkeys(graph.get_collection(_COLLECTION))]


def only(found: Iterable[Optional[T]]) -> Optional[T]:
    """Return the only value in ``found`` that is not None; None if all values are None.

    Raises:
      ValueError: several values are not None, so that all but one would be lost.
    """
    some = [each for each in found if each is not None]
    if len(some) > 1:
        raise ValueError(f"expected at most one of the model's extensions to have a value, found {some}")
    return some[0] if some else None


def refuse_unfit(model: ModelGraph, found: Sequence[Extension]) -> None:
    """Refuse settings that do not fit ``found``, the model's extensions, or that need an extension that is missing.

    Raises:
      JobError: the run has such a setting.
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
    """In this context, let lookups in the current graph get rows from ``source``: (table, ids [n]) -> rows [n, width].

    Such a graph has no parameter servers, and does not train.
    """
    _sources.append((tf.get_default_graph(), source))
    try:
        yield
    finally:
        _sources.pop()


def source_of_rows() -> Optional[Callable[[Any, Any], Any]]:
    """Return the function from which lookups in the current graph get rows; None if parameter servers hold the rows."""
    return _sources[-1][1] if _sources and _sources[-1][0] is tf.get_default_graph() else None
