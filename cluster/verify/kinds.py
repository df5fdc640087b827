"""The kinds of mistakes that may cause a difference from plain TensorFlow, in words."""

from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional

import numpy as np

from cluster.runtime.tf_compat import tf
from cluster.variables.masters import plain_name
from cluster.variables.uses import ancestors, handle_of, readers, writes
from cluster.verify.named_values import Values
from cluster.verify.plain import Plain
from cluster.verify.plain_step import Reference

_STEP = "global_step"


class Suspect(NamedTuple):
    """Variables that differ from a step of plain TensorFlow.

    ``names`` are the names of these variables, in order; ``found`` are the servers' values. ``reference`` is the step
    of plain TensorFlow. ``workers`` is the number of workers, each with a batch, and ``parts`` the number of parts of
    one worker's batch. ``again`` builds the author's functions once more.
    """

    names: List[str]
    found: Values
    reference: Reference
    parts: int
    workers: int
    again: Callable[[], Any]


def kind(of: Suspect) -> Optional[str]:
    """Return the probable mistake behind the differences in ``of``, as the end of a sentence; None if it is unknown."""
    looks = (_random, _race, _counted_step, _counted_terms, _read_too_early, _scaled, _counted_change, _kept)
    return next(filter(None, (look(of) for look in looks)), None)


def coupled(parts: int) -> str:
    """Return the message about a model whose examples depend on each other, in batches of ``parts`` parts."""
    return (
        "it looks like a model that couples examples: the loss of an example depends on other examples of its batch,"
        f" and each of the {parts} parts of a step is a separate batch; let the loss of an example depend only on that"
        " example, or train with one worker, one tower and without accumulate"
    )


def _random(of: Suspect) -> Optional[str]:
    one, other = _computed(of.reference.plain), _computed(of.again())
    unlike = sorted(name for name in {**one, **other} if one.get(name) != other.get(name))
    if not unlike:
        return None
    return (
        f"it looks like random numbers of Python: two builds of the model differ in {unlike[0]}; draw them in inputs,"
        " or with a fixed seed in each call of the model"
    )


def _race(of: Suspect) -> Optional[str]:
    if not of.reference.never_alike:
        return None
    return (
        f"it looks like a race: plain TensorFlow also computes {of.reference.never_alike[0]} twice from the same"
        " values, with different results; order its operations with tf.control_dependencies"
    )


def _counted_step(of: Suspect) -> Optional[str]:
    if of.names[0] != _STEP:
        return None
    here, there = (int(values[_STEP] - of.reference.before[_STEP]) for values in (of.found, of.reference.after))
    counts = f"this step adds {here} to the global step, and plain TensorFlow adds {there}"
    return f"{counts}; probably the optimizer also changes the global step itself: leave that to apply_gradients"


def _counted_terms(of: Suspect) -> Optional[str]:
    for name in of.reference.terms:
        for more in _numbers(of):
            if _explains(of, of.reference.with_term(name, more).after):
                return (
                    f"it looks like a term that is counted {_times(1 + more)}: the terms in the collection {name}"
                    f" count once in plain TensorFlow"
                )
    return None


def _numbers(of: Suspect) -> Iterator[float]:
    """Yield how many times too often a term counts if each part, tower or worker adds it, or sums all before it."""
    for number in dict.fromkeys((of.parts, of.parts * of.workers, of.workers)):
        yield from () if number == 1 else ((number - 1) / 2, number - 1.0, 1 / number - 1)
    yield from (-1.0, 1.0)


def _read_too_early(of: Suspect) -> Optional[str]:
    name = _read_while_changed(of.reference.plain)
    if name is None:
        return None
    return f"it looks like a race: the optimizer reads {name}, which tf.GraphKeys.UPDATE_OPS change in the same step"


def _scaled(of: Suspect) -> Optional[str]:
    for more in _numbers(of):
        if more != -1 and _explains(of, of.reference.scaled(1 + more).after):
            return f"it looks like gradients that are counted {_times(1 + more)}"
    return None


def _counted_change(of: Suspect) -> Optional[str]:
    name, reference = of.names[0], of.reference
    if name in reference.plain.trained or name not in reference.plain.model_names:
        return None
    number = _ratio(*(np.asarray(values[name], np.float64) for values in (reference.before, of.found, reference.after)))
    if number is None:
        return "it looks like a change that the model itself makes, counted too often or too rarely"
    return f"it looks like a change that is counted {_times(number)}: plain TensorFlow makes it once a step"


def _ratio(before: Any, found: Any, expected: Any) -> Optional[float]:
    moved = expected != before
    return float(np.median((found - before)[moved] / (expected - before)[moved])) if moved.any() else None


def _kept(of: Suspect) -> Optional[str]:
    if any(name in of.reference.plain.model_names for name in of.names):
        return None
    return (
        "it looks like a step that is read at another time: only the optimizer's own variables differ; the optimizer"
        " may use the global step, or the loss, from before or after this step"
    )


def _explains(of: Suspect, after: Values) -> bool:
    return of.reference.explains(of.found, after, of.names)


def _times(number: float) -> str:
    return "once" if number == 1 else f"{number:.3g} times"


def _read_while_changed(plain: Plain) -> Optional[str]:
    """Return the name of a variable that updates change and the optimizer reads in the same step."""
    grads = [tensor for each in plain.noted for tensor in tf.nest.flatten(each.grad)]
    applies = ancestors([plain.train]) - ancestors([plain.loss, *grads]) - plain.of_updates
    for variable in plain.variables:
        if any(op in plain.of_updates for op in writes(variable)) and _is_read(variable, applies):
            return plain_name(variable)
    return None


def _is_read(variable: Any, by: Any) -> bool:
    behind = {op for op, _ in readers(variable)}
    direct = {op for op in handle_of(variable).consumers() if op.type == "ReadVariableOp"}
    return bool((behind | direct) & by)


def _computed(plain: Plain) -> Dict[str, str]:
    """Return the types of a step's operations and its constants, by name."""
    return {op.name: str(op.node_def if op.type == "Const" else op.type) for op in ancestors([plain.train])}
