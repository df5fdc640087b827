"""Several optimizers, each for the variables whose names begin in the same way, such as ``wide/`` and ``deep/``."""

import difflib
from itertools import accumulate, takewhile
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple

from cluster.errors import JobError
from cluster.runtime.tf_compat import tf
from cluster.updates.counted_step import applied
from cluster.variables.masters import plain_name

GradsAndVars = Sequence[Tuple[Any, Any]]
FED_TABLES = "fed_tables"  # the graph's collection of names of tables whose rows are fed, which have no variable


class Grouped(tf.train.Optimizer):  # type: ignore[misc]
    """One optimizer made of several.

    Args:
      parts: the optimizers, by the beginning of their variables' names. The key ``wide`` fits the name ``wide`` and all
        names ``wide/…``, ``wide/`` only the latter, and ``""`` all names. The longest key that fits a name counts.
      who: the beginning of an error, with the place of the author's function.
    """

    def __init__(self, parts: Mapping[str, Any], who: str = "optimizer"):
        super().__init__(use_locking=False, name="Grouped")
        self.parts, self._who = dict(parts), who

    def compute_gradients(self, loss: Any, var_list: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Return (gradient, variable) pairs; each optimizer of ``parts`` computes the gradients of its own variables.

        Raises:
          JobError: a variable belongs to no part, or a part has no variable in the graph.
        """
        step = tf.train.get_global_step()
        held = [each.op.name for each in tf.global_variables() if each is not step]
        self._refuse_unmatched([*held, *tf.get_collection(FED_TABLES)])
        variables = tf.trainable_variables() if var_list is None else list(var_list)
        found: Dict[str, Any] = {}
        for optimizer, names in self._together(variables):
            theirs = [each for each in variables if each.name in names]
            pairs = optimizer.compute_gradients(loss, theirs, *args, **kwargs)
            found.update({variable.name: grad for grad, variable in pairs})
        return [(found.get(each.name), each) for each in variables]

    def _refuse_unmatched(self, names: Sequence[str]) -> None:
        for key in self.parts:
            if not any(_fits(key, name) for name in names):
                known = sorted({scope for name in names for scope in _scopes(name)})
                near = difflib.get_close_matches(key, known, 1)
                hint = f" (did you mean {near[0]!r}?)" if near else ""
                first = sorted({name.split("/")[0] for name in names})
                raise JobError(
                    f"{self._who}: expected a variable for every key, found none for {key!r}{hint}; names"
                    f" begin with {', '.join(first)}; correct the key, or leave it out"
                )

    def _together(self, variables: Sequence[Any]) -> List[Tuple[Any, List[str]]]:
        """Return optimizers with the names of their variables; those with TensorFlow's way share a backpropagation."""
        own: List[str] = []
        others: List[Tuple[Any, List[str]]] = []
        for prefix, optimizer in self.parts.items():
            names = [each.name for each in variables if self.prefix(plain_name(each)) == prefix]
            if not _has_a_way_of_its_own(optimizer):
                own += names
            elif names:
                others.append((optimizer, names))
        plain = tf.train.Optimizer(use_locking=False, name="Plain")  # computes gradients in TensorFlow's own way
        return [*([(plain, own)] if own else []), *others]

    def apply_gradients(self, grads_and_vars: GradsAndVars, global_step: Any = None, name: Any = None) -> Any:
        """Return the operation by which each optimizer of ``parts`` applies its gradients.

        The last optimizer, after the others, counts the step.
        """
        *others, (last, its_pairs) = self.share_out(grads_and_vars)
        before = [optimizer.apply_gradients(pairs) for optimizer, pairs in others]
        with tf.control_dependencies(before):
            return tf.group(*before, applied(last, its_pairs, global_step), name=name)

    def share_out(self, grads_and_vars: GradsAndVars) -> List[Tuple[Any, List[Tuple[Any, Any]]]]:
        """Return each optimizer with its share of ``grads_and_vars``; leave out optimizers without gradients."""
        found: Dict[str, List[Tuple[Any, Any]]] = {}
        for grad, variable in grads_and_vars:
            found.setdefault(self.prefix(plain_name(variable)), []).append((grad, variable))
        return [
            (self.parts[prefix], pairs) for prefix, pairs in found.items() if any(grad is not None for grad, _ in pairs)
        ]

    def prefix(self, name: str) -> str:
        """Return the key in ``parts`` of the optimizer for the variable ``name``.

        Raises:
          JobError: no key fits the name.
        """
        fitting = [each for each in self.parts if _fits(each, name)]
        if not fitting:
            raise JobError(
                f"{self._who}: expected an optimizer for every variable, found none for {name} among"
                f' {", ".join(self.parts)}; add one under "" for the remaining variables'
            )
        return max(fitting, key=len)


def _fits(key: str, name: str) -> bool:
    return not key or name == key or name.startswith(f"{key.rstrip('/')}/")


def _scopes(name: str) -> Iterator[str]:
    """Return the beginnings of a name that may be keys, including the whole name: ``a``, ``a/b``."""
    return accumulate(name.split("/"), "{}/{}".format)


def _has_a_way_of_its_own(optimizer: Any) -> bool:
    """Return whether an optimizer has a ``compute_gradients`` of its own.

    The method may belong to the optimizer itself, or to a class below TensorFlow's.
    """
    below = takewhile(lambda each: each is not tf.train.Optimizer, type(optimizer).__mro__)
    return any("compute_gradients" in vars(each) for each in [optimizer, *below])
