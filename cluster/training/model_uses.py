"""Find how a model uses its variables, and refuse those that servers cannot hold."""

from typing import Any, Collection, Dict, List, Mapping, Sequence

from cluster.errors import JobError
from cluster.job import Job
from cluster.model.mirrors import read_once
from cluster.model.model_graph import ModelGraph
from cluster.model.model_state import State, changes, settle
from cluster.steps.extension import Extension
from cluster.steps.local_steps import refuse_not_plain
from cluster.task import Train
from cluster.updates.incremental_apply import is_elementwise
from cluster.variables.profile import VariableProfile, profile_variables
from cluster.variables.uses import ancestors
from cluster.verify.givens import given_to

_LARGEST = (1 << 31) - 1  # bytes that TensorFlow sends in one piece


class ModelUses:
    """The uses of a model's variables in its graph, without the variables that its extensions claim.

    Attributes:
      grads: the gradients of variables, by name.
      step: the operations of a step.
      changing: names of the variables that the model itself changes.
      is_elementwise: whether the optimizer updates each element of a variable independently of the others.
      profiles: the profiles of all variables, by name.
      state: the variables that the model itself changes, and the step's reads of them.
      given: the values that a verified run sends to the chief (``cluster.verify.givens``); only with ``train.verify``.

    Raises:
      JobError: servers cannot hold a variable, or steps with this variable would be wrong.
    """

    def __init__(self, model: ModelGraph, extensions: Sequence[Extension]):
        self._model, self._task, self._train = model, model.task, model.train
        self.grads = {variable.op.name: grad for grad, variable in model.gradients.pairs if grad is not None}
        measured = model.measured.tensors if model.measured else []
        step = ancestors([model.loss, *self.grads.values(), *measured])
        refuse_unlisted(model.job, self.grads, model.variables)
        refuse_unknown_shapes(model.job, model.variables)
        refuse_cold_copies(model.job, self._train, model.variables, model.owned)
        self.step = step | ancestors(model.updates)
        self.changing = list(changes(model.own_variables, self.step))
        moved = [model.variables[name] for name in self.changing]
        self.is_elementwise = is_elementwise(model.optimizer, moved)
        for each in extensions:
            each.claim(model, self.grads, self.is_elementwise)
        self.profiles: Dict[str, VariableProfile] = profile_variables(
            list(model.variables.values()), self.grads, self.is_elementwise, self.step
        )
        if self._train.local_steps > 1:
            refuse_not_plain(model, extensions, self.changing, {name: self.profiles[name] for name in self.grads})
        later = model.sharing.later_operations()
        self.state = State(model.own_variables, self.grads, self.step if self._task.is_chief else step, later)
        claimed = [grad for each in extensions for grad in each.grads.values()]
        results = [model.loss, *self.grads.values(), *claimed, *measured]
        if self._train.verify:  # before lookups are moved to the servers
            copies, rows = (
                model.sharing.operations[: len(model.losses)],
                {op for each in extensions for op in each.from_servers()},
            )
            self.given = given_to(copies, ancestors(results), rows)
        settle(self.state, results, self.step, later, self._task.num_workers)
        if self._task.num_workers > 1:
            self.state.refuse_own(model.examples, results)
        read_once([each for name, each in model.variables.items() if name in self.grads], self.step)

    @property
    def fetched(self) -> List[str]:
        """Return the names of variables that a step must fetch outside of buckets.

        A step uses these variables, and they may have changed on the servers.
        """
        trained = [name for name in self.grads if not self.profiles[name].travels]
        state = [name for name in self.state.used if name not in self.state.changed]
        return [*trained, *([] if self._task.is_chief else state), *self._model.owned]


def refuse_unknown_shapes(job: Job, variables: Mapping[str, Any]) -> None:
    """Refuse ``variables``, by name, if one of them has a shape that is not fully known.

    Raises:
      JobError: a shape is not fully known.
    """
    for name, variable in variables.items():
        known = variable.shape.is_fully_defined()
        job.check("model", "variables of known shape", f"{name!r} of shape {variable.shape}", known)


def refuse_unlisted(job: Job, trained: Collection[str], variables: Collection[str]) -> None:
    """Refuse a trained variable that is not one of the graph's ``variables``: no operation would initialize it.

    Args:
      trained, variables: the names of the variables.

    Raises:
      JobError: there is such a variable.
    """
    for name in trained:
        expected = "a trained variable in the collection tf.GraphKeys.GLOBAL_VARIABLES"
        job.check("model", expected, f"{name!r}, which is only in others", name in variables)


def refuse_too_large(job: Job, profiles: Mapping[str, VariableProfile], cuts: Collection[str]) -> None:
    """Refuse a variable that is too large for TensorFlow to send in one piece.

    Args:
      profiles: the profiles of all variables, by name.
      cuts: the names of the variables that travel in slices, which may be of any size.

    Raises:
      JobError: there is such a variable.
    """
    for name, each in profiles.items():
        ok = name in cuts or each.bytes <= _LARGEST
        expected = (
            "variables of at most 2 GiB, because a constraint or an optimizer that is not TensorFlow's own keeps"
            " them whole"
        )
        job.check("model", expected, f"{name!r} of {each.bytes:,} bytes", ok)


def refuse_cold_copies(job: Job, train: Train, variables: Mapping[str, Any], owned: Collection[str]) -> None:
    """With a warm start, refuse an optimizer's variable that begins as a copy of one of the model's variables.

    The workers create such a variable together with the model. So it would copy a value from before the warm start.

    Args:
      variables: all variables, by name.
      owned: the names of the variables that the optimizer created together with the model.

    Raises:
      JobError: there is such a variable.
    """
    of_model = {variable.op for name, variable in variables.items() if name not in owned}
    for name in owned if train.warm_start else ():
        found = f"one whose {name!r} begins as a copy of the model's values"
        ok = not of_model & ancestors([variables[name].initial_value])
        job.check("optimizer", "variables that do not begin as copies of the model's, with train.warm_start", found, ok)


def refuse_backup_of_changing(train: Train, reads_changing: bool) -> None:
    """Refuse backup workers if an update reads a variable that the model itself changes, such as a learning rate.

    The chief's own step makes the change. With backup workers, an update may happen without the chief's step.

    Args:
      reads_changing: whether the update reads such a variable.

    Raises:
      JobError: the update reads such a variable, and the run has backup workers.
    """
    if reads_changing and train.backup_workers:
        raise JobError(
            "train.backup_workers: expected 0 with an optimizer that reads a variable which the model changes in each"
            f" step, found {train.backup_workers}; let the optimizer compute it from the global step"
        )
