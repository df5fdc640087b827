"""Note what a ``model_fn`` minimises, and refuse a ``train_op`` that does more.

While ``noted`` is open, ``optimizer.minimize`` adds no gradients to the graph. It only notes the call, since this
project's workers compute the gradients, and its servers apply them. So a ``train_op`` may consist of ``minimize``, of
``tf.GraphKeys.UPDATE_OPS``, and of a count of the global step: a step does these three. Anything else is refused.
"""

import contextlib
import copy
import inspect
from typing import Any, Callable, Iterator, List, NamedTuple, NoReturn, Optional, Sequence, Set

from cluster.errors import JobError
from cluster.model.model_state import place
from cluster.runtime.tf_compat import tf
from cluster.updates.optimizer_gradients import in_place_of
from cluster.variables.uses import handle_of, ops_of, sources

_EFFECTLESS = ("NoOp", "Identity", "Const")
_OF_A_SCAFFOLD = (
    "init_op", "init_feed_dict", "init_fn", "ready_op", "ready_for_local_init_op", "local_init_op", "summary_op",
    "saver",
)  # fmt: skip
_SHOWING = ("LoggingTensorHook", "StepCounterHook", "SummarySaverHook")  # hooks that change nothing
_SIGNATURE = inspect.signature(tf.train.Optimizer.minimize)


def refuse(what: Any, expected: str, found: Any) -> NoReturn:
    """Raise JobError for ``what``, an operation or an author's function, with its place."""
    code = getattr(inspect.unwrap(what), "__code__", None) if callable(what) else None
    function = f"{code.co_filename}:{code.co_firstlineno}" if code else what
    raise JobError(f"{place(what) if isinstance(what, tf.Operation) else function}: expected {expected}, found {found}")


class Minimized(NamedTuple):
    """One call of ``minimize``: its optimizer and arguments, and the operation ``op`` that it returned."""

    optimizer: Any
    loss: Any
    variables: Optional[Sequence[Any]]
    op: Any


@contextlib.contextmanager
def noted(model_fn: Callable[..., Any]) -> Iterator[List[Minimized]]:
    """Yield the list of the calls of ``minimize`` inside this context; no gradient is computed inside."""
    calls: List[Minimized] = []

    def minimize(*args: Any, **kwargs: Any) -> Any:
        given = _SIGNATURE.bind(*args, **kwargs).arguments
        if given.get("grad_loss") is not None:
            refuse(model_fn, "a call of minimize without grad_loss", "one with grad_loss")
        optimizer, loss, variables = (given.get(name) for name in ("self", "loss", "var_list"))
        calls.append(Minimized(optimizer, loss, variables, tf.no_op("minimize")))
        return calls[-1].op

    def compute_gradients(*_: Any, **__: Any) -> None:
        step = "for clipping, set train.clip_norm"
        refuse(model_fn, "optimizer.minimize(loss, …)", f"a call of compute_gradients; {step}")

    with in_place_of("minimize", minimize), in_place_of("compute_gradients", compute_gradients):
        yield calls


def copied(model_fn: Callable[..., Any], optimizer: Any) -> Any:
    """Return a copy of an optimizer that has not been used, for any graph.

    Raises:
      JobError: the optimizer has a tensor.
    """
    tensors = list(_tensors(optimizer))
    if tensors:
        kind = type(optimizer).__name__
        step = f"call estimator.functions with optimizer=lambda args: tf.train.{kind}(…), which makes it"
        refuse(model_fn, f"only numbers in {kind}", f"a tensor as {tensors[0].strip('_')}; {step}")
    return copy.deepcopy(optimizer)


def _tensors(optimizer: Any) -> Iterator[str]:
    """Yield the names of an optimizer's attributes that belong to a graph."""
    for name, value in vars(optimizer).items():
        if isinstance(value, (tf.Tensor, tf.Variable, tf.Operation)):
            yield name
        elif isinstance(value, tf.train.Optimizer):
            yield from _tensors(value)


def refuse_unfit(model_fn: Callable[..., Any], spec: Any, calls: Sequence[Minimized], is_given: bool) -> None:
    """Refuse the result of ``model_fn`` in the mode TRAIN if a step would not carry out the whole of it.

    Args:
      is_given: whether the author has given the optimizer beside ``model_fn``.

    Raises:
      JobError: a step would leave something out.
    """
    run = set(_run_by(spec, {each.op for each in calls}))
    if not calls or not run.issuperset(each.op for each in calls):
        refuse(model_fn, "the result of optimizer.minimize in the train_op", spec.train_op)
    others = [each.loss for each in calls if each.loss is not spec.loss]
    if others:
        refuse(model_fn, "minimize of the loss in EstimatorSpec", f"minimize of {others[0]}")
    if len(calls) > 1 and not is_given:
        step = 'call estimator.functions with optimizer=lambda args: {"prefix of variables": …, "": …}'
        refuse(model_fn, "one optimizer", f"{len(calls)} calls of minimize; {step}")
    trained = {id(each) for each in tf.trainable_variables()}
    minimized = [trained if each.variables is None else set(map(id, each.variables)) for each in calls]
    if set().union(*minimized) != trained:
        refuse(model_fn, "minimize of all trainable variables", "a var_list without some of them")
    _refuse_hooks(model_fn, spec)


def _run_by(spec: Any, minimized: Set[Any]) -> Iterator[Any]:
    """Yield the operations ``minimized`` that the ``train_op`` runs; refuse any other effect of the ``train_op``."""
    done = sources([spec.loss]) | {op for each in tf.get_collection(tf.GraphKeys.UPDATE_OPS) for op in ops_of(each)}
    step = handle_of(tf.train.get_global_step())
    left, seen = ops_of(spec.train_op), set(done)
    while left:
        op = left.pop()
        if op in seen:
            continue
        seen.add(op)
        if op in minimized:
            yield op
        elif op.type not in _EFFECTLESS and not _counts(op, step):
            known = "a train_op of minimize and of tf.GraphKeys.UPDATE_OPS"
            refuse(op, known, f"{op.name}; add it to tf.GraphKeys.UPDATE_OPS, which each step runs")
        left += [*op.control_inputs, *(each.op for each in op.inputs if each is not step)]


def _counts(op: Any, step: Any) -> bool:
    """Return whether an operation adds one to the global step with the handle ``step``."""
    is_of_step = op.type in ("AssignAdd", "AssignAddVariableOp") and op.inputs[0] is step
    return is_of_step and tf.get_static_value(op.inputs[1]) == 1


def _refuse_hooks(model_fn: Callable[..., Any], spec: Any) -> None:
    hooks = [type(each).__name__ for each in (*(spec.training_hooks or ()), *(spec.training_chief_hooks or ()))]
    found = [f"a {name}" for name in hooks if name not in _SHOWING]
    found += [f"a scaffold with {name}" for name in _OF_A_SCAFFOLD if getattr(spec.scaffold, name, None) is not None]
    if found:
        refuse(model_fn, "an EstimatorSpec without hooks and without a scaffold", found[0])
