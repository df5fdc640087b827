"""Several optimizers, each for the variables whose names begin in one way, such as wide ones and deep ones."""

from itertools import takewhile
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from cluster.errors import JobError
from cluster.runtime.tf_compat import tf
from cluster.variables.masters import plain_name

GradsAndVars = Sequence[Tuple[Any, Any]]


class Grouped(tf.train.Optimizer):  # type: ignore[misc]
    """One optimizer made of several.

    Args:
      parts: by the beginning of names: ``wide`` is for ``wide`` and all of ``wide/…``, ``""`` for all that is left.
        The longest that fits counts.
    """

    def __init__(self, parts: Mapping[str, Any]):
        super().__init__(use_locking=False, name="Grouped")
        self.parts = dict(parts)

    def compute_gradients(self, loss: Any, var_list: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Compute each part's gradients in that part's way.

        Raises:
          JobError: a variable is no part's.
        """
        variables = tf.trainable_variables() if var_list is None else list(var_list)
        found: Dict[str, Any] = {}
        for optimizer, names in self._together(variables):
            theirs = [each for each in variables if each.name in names]
            pairs = optimizer.compute_gradients(loss, theirs, *args, **kwargs)
            found.update({variable.name: grad for grad, variable in pairs})
        return [(found.get(each.name), each) for each in variables]

    def _together(self, variables: Sequence[Any]) -> List[Tuple[Any, List[str]]]:
        """Optimizers, each with the names of its variables; those with TensorFlow's own way share a backpropagation."""
        own: List[str] = []
        others: List[Tuple[Any, List[str]]] = []
        for prefix, optimizer in self.parts.items():
            names = [each.name for each in variables if self.prefix(plain_name(each)) == prefix]
            if not _has_a_way_of_its_own(optimizer):
                own += names
            elif names:
                others.append((optimizer, names))
        return [*([(_Plain(), own)] if own else []), *others]

    def apply_gradients(self, grads_and_vars: GradsAndVars, global_step: Any = None, name: Any = None) -> Any:
        """Apply each part's gradients by that part; the last one, after the others, counts the step."""
        *others, (last, its_pairs) = self.share_out(grads_and_vars)
        applied = [optimizer.apply_gradients(pairs) for optimizer, pairs in others]
        with tf.control_dependencies(applied):
            return last.apply_gradients(its_pairs, global_step=global_step, name=name)

    def share_out(self, grads_and_vars: GradsAndVars) -> List[Tuple[Any, List[Tuple[Any, Any]]]]:
        """Return optimizers with their part of these pairs, those that have any."""
        found: Dict[str, List[Tuple[Any, Any]]] = {}
        for grad, variable in grads_and_vars:
            found.setdefault(self.prefix(plain_name(variable)), []).append((grad, variable))
        return [
            (self.parts[prefix], pairs) for prefix, pairs in found.items() if any(grad is not None for grad, _ in pairs)
        ]

    def prefix(self, name: str) -> str:
        """Return which part a variable of this name is for.

        Raises:
          JobError: the variable is no part's.
        """
        fitting = [each for each in self.parts if not each or name == each or name.startswith(f"{each}/")]
        if not fitting:
            raise JobError(
                f"optimizer: expected one for every variable, found none for {name} among {', '.join(self.parts)};"
                ' add one under "" for all that is left'
            )
        return max(fitting, key=len)


def _has_a_way_of_its_own(optimizer: Any) -> bool:
    """Return whether an optimizer has a ``compute_gradients`` of its own.

    The optimizer itself, or a class of it below TensorFlow's, may have the method.
    """
    below = takewhile(lambda each: each is not tf.train.Optimizer, type(optimizer).__mro__)
    return any("compute_gradients" in vars(each) for each in [optimizer, *below])


class _Plain(tf.train.Optimizer):  # type: ignore[misc]
    """TensorFlow's own way to compute gradients."""

    def __init__(self) -> None:
        super().__init__(use_locking=False, name="Plain")
