"""Note what a ``model_fn`` minimises, and refuse a ``train_op`` that does more.

While ``noted`` is open, ``optimizer.minimize`` adds no gradients to the graph. It only notes the call, since this
project's workers compute the gradients, and its servers apply them. So a ``train_op`` may consist of ``minimize``, of
``tf.GraphKeys.UPDATE_OPS``, and of a count of the global step: a step does these three. Anything else is refused.
"""

import contextlib
import copy
from typing import Any, Callable, Iterator, List, NamedTuple, NoReturn, Optional, Sequence, Set, Tuple

from cluster.errors import JobError
from cluster.model.model_state import place
from cluster.runtime.code_lines import place_of_function
from cluster.runtime.tf_compat import is_of_tensorflow, tf
from cluster.sharing.keras_graphs import added_updates
from cluster.updates.optimizer_gradients import arguments_of_minimize, in_place_of
from cluster.variables.uses import ancestors, handle_of, ops_of, sources

_EFFECTLESS = ("NoOp", "Identity", "Const", "ReadVariableOp")
_OF_A_SCAFFOLD = (
    "init_op", "init_feed_dict", "init_fn", "ready_op", "ready_for_local_init_op", "local_init_op", "summary_op",
    "saver",
)  # fmt: skip
_HOOKS = ("training_hooks", "training_chief_hooks", "evaluation_hooks", "prediction_hooks")
_SHOWING = ("LoggingTensorHook", "StepCounterHook", "SummarySaverHook")  # hooks that change nothing
Function = Callable[..., Any]


def refuse(what: Any, expected: str, found: Any) -> NoReturn:
    """Raise JobError for ``what``, an operation or an author's function, with its place."""
    where = place(what) if isinstance(what, tf.Operation) else place_of_function(what) or what
    raise JobError(f"{where}: expected {expected}, found {found}")


class Minimized(NamedTuple):
    """One call of ``minimize``: its arguments, a copy of its optimizer, and the operation ``op`` that it returned."""

    optimizer: Any
    loss: Any
    variables: Optional[Sequence[Any]]
    counts: bool  # whether it counts the global step
    op: Any


@contextlib.contextmanager
def noted(model_fn: Function, copies: bool) -> Iterator[List[Minimized]]:
    """Yield the list of the calls of ``minimize`` inside this context; no gradient is computed inside.

    Args:
      copies: whether to copy each optimizer, as it is when it minimizes.
    """
    calls: List[Minimized] = []

    def minimize(*args: Any, **kwargs: Any) -> Any:
        given = arguments_of_minimize(*args, **kwargs)
        if given["grad_loss"] is not None:
            refuse(model_fn, "a call of minimize without grad_loss", "one with grad_loss")
        optimizer, loss, variables, counted = (given[name] for name in ("self", "loss", "var_list", "global_step"))
        if counted is not None and handle_of(counted) is not handle_of(tf.train.get_global_step()):
            refuse(model_fn, "minimize with tf.train.get_global_step()", f"one that counts {counted.op.name}")
        variables = None if variables is None else tf.nest.flatten(variables)
        optimizer = copied(model_fn, optimizer) if copies else None
        calls.append(Minimized(optimizer, loss, variables, counted is not None, tf.no_op("minimize")))
        return calls[-1].op

    def compute_gradients(*_: Any, **__: Any) -> None:
        step = "leave out summaries of gradients, and let train.clip_norm clip them"
        refuse(model_fn, "optimizer.minimize(loss, …)", f"a call of compute_gradients; {step}")

    with in_place_of("minimize", minimize), in_place_of("compute_gradients", compute_gradients):
        yield calls


def copied(model_fn: Function, optimizer: Any) -> Any:
    """Return a copy of an optimizer, which can be used in any graph.

    Raises:
      JobError: the optimizer belongs to its graph.
    """
    kind = type(optimizer).__name__
    found = next(_of_a_graph(optimizer), None)
    with contextlib.suppress(Exception):  # what else belongs to a graph cannot be copied
        if found is None:
            return copy.deepcopy(optimizer)
    step = f"call estimator.functions with optimizer=lambda args: tf.train.{kind}(…), which makes it"
    what = f"a tensor as {found.strip('_')}" if found else "objects of the graph"
    refuse(model_fn, f"only numbers in {kind}", f"{what}; {step}")


def _of_a_graph(value: Any, name: str = "", above: Sequence[Any] = ()) -> Iterator[str]:
    """Yield the names of the attributes of an optimizer that are tensors, or have tensors."""
    if isinstance(value, (tf.Tensor, tf.Variable, tf.Operation)):
        yield name
    elif not any(value is each for each in above):
        for key, part in _parts(value):
            yield from _of_a_graph(part, key or name, (*above, value))


def _parts(value: Any) -> Iterator[Tuple[str, Any]]:
    """Yield the parts of an optimizer, a container or a function's closure; those of an optimizer have names."""
    if isinstance(value, tf.train.Optimizer):
        yield from vars(value).items()
    elif isinstance(value, (dict, list, tuple)):
        yield from (("", each) for each in (value.values() if isinstance(value, dict) else value))
    for cell in getattr(value, "__closure__", None) or ():
        with contextlib.suppress(ValueError):  # its variable has no value
            yield "", cell.cell_contents


def refuse_hooks(model_fn: Function, spec: Any) -> None:
    """Refuse the result of ``model_fn`` in any mode if it has a scaffold, or hooks that do more than show something.

    Raises:
      JobError: nothing would run these.
    """
    hooks = [hook for name in _HOOKS for hook in getattr(spec, name, None) or ()]
    found = [f"a {type(each).__name__}" for each in hooks if not _shows(each)]
    scaffold = getattr(spec, "scaffold", None)
    found += [f"a scaffold with {name}" for name in _OF_A_SCAFFOLD if getattr(scaffold, name, None) is not None]
    if found:
        refuse(model_fn, "an EstimatorSpec without hooks and without a scaffold", found[0])


def _shows(hook: Any) -> bool:
    return is_of_tensorflow(hook) and type(hook).__name__ in _SHOWING


def refuse_unfit(model_fn: Function, spec: Any, calls: Sequence[Minimized], is_given: bool) -> None:
    """Refuse the result of ``model_fn`` in the mode TRAIN if a step would do less, or more, than its ``train_op``.

    Args:
      is_given: whether the author has given the optimizer beside ``model_fn``.

    Raises:
      JobError: a step would differ.
    """
    updates = [op for each in (*tf.get_collection(tf.GraphKeys.UPDATE_OPS), *added_updates()) for op in ops_of(each)]
    known = {each.op for each in calls}
    run = set(_run_by(spec, known, updates))
    if not known or not run >= known:
        refuse(model_fn, "the result of optimizer.minimize in the train_op", spec.train_op)
    _refuse_order(model_fn, spec, known, updates)
    counts = sum(each.counts for each in calls) + len(run - known)
    if counts > 1:
        refuse(model_fn, "a train_op that counts the global step once", f"{counts} times")
    others = [each.loss for each in calls if not _is_same(each.loss, spec.loss)]
    if others:
        refuse(model_fn, "minimize of the loss in EstimatorSpec", f"minimize of {others[0]}")
    if len(calls) > 1 and not is_given:
        step = 'call estimator.functions with optimizer=lambda args: {"prefix of variables": …, "": …}'
        refuse(model_fn, "one optimizer", f"{len(calls)} calls of minimize; {step}")
    trained = [id(each) for each in tf.trainable_variables()]
    minimized = [
        id(v) for each in calls for v in (tf.trainable_variables() if each.variables is None else each.variables)
    ]
    if sorted(minimized) != sorted(trained):
        step = "give variables that stay as they are trainable=False"
        refuse(model_fn, "minimize of all trainable variables, each once", f"another var_list; {step}")


def _is_same(minimized: Any, loss: Any) -> bool:
    """Return whether the loss of an EstimatorSpec is the minimized one, perhaps without dimensions of length 1."""
    return loss is minimized or (loss.op.type == "Reshape" and loss.op.inputs[0] is minimized)


def _refuse_order(model_fn: Function, spec: Any, minimized: Set[Any], updates: Sequence[Any]) -> None:
    """Refuse updates that the ``train_op`` does not run, or runs after ``minimize``: a step runs all, and before it."""
    if not ancestors([spec.train_op, spec.loss]).issuperset(updates):
        refuse(model_fn, "a train_op that runs tf.GraphKeys.UPDATE_OPS and the updates of layers", "one without some")
    if not ancestors(updates).isdisjoint(minimized):
        refuse(model_fn, "tf.GraphKeys.UPDATE_OPS that run before minimize", "one that waits for minimize")


def _run_by(spec: Any, minimized: Set[Any], updates: Sequence[Any]) -> Iterator[Any]:
    """Yield what the ``train_op`` runs of ``minimized`` and of counts of the global step; refuse any other effect."""
    step = handle_of(tf.train.get_global_step())
    left, seen = ops_of(spec.train_op), sources([spec.loss]).union(updates)
    while left:
        op = left.pop()
        if op in seen:
            continue
        seen.add(op)
        if op in minimized or _counts(op, step):
            yield op
        elif op.type not in _EFFECTLESS:
            is_of_step = any(each is step for each in op.inputs)
            advice = "leave it out: each step is counted" if is_of_step else "add it to them, before minimize"
            refuse(op, "a train_op of minimize and of tf.GraphKeys.UPDATE_OPS", f"{op.name}; {advice}")
        left += [*op.control_inputs, *(each.op for each in op.inputs if each is not step)]


def _counts(op: Any, step: Any) -> bool:
    """Return whether an operation adds one to the global step with the handle ``step``."""
    is_of_step = op.type in ("AssignAdd", "AssignAddVariableOp") and op.inputs[0] is step
    return is_of_step and tf.get_static_value(op.inputs[1]) == 1
