"""Refuse variables that the servers cannot hold, before training."""

from typing import Any, Collection, Mapping

from cluster.errors import JobError
from cluster.job import Job
from cluster.task import Train
from cluster.variables.profile import VariableProfile
from cluster.variables.uses import ancestors

_LARGEST = (1 << 31) - 1  # bytes that TensorFlow sends in one piece


def refuse_unknown_shapes(job: Job, variables: Mapping[str, Any]) -> None:
    """Refuse variables, by name, whose shape is not known.

    Raises:
      JobError: there are some.
    """
    for name, variable in variables.items():
        known = variable.shape.is_fully_defined()
        job.check("model", "variables of known shape", f"one of shape {variable.shape} as {name!r}", known)


def refuse_unlisted(job: Job, trained: Collection[str], variables: Collection[str]) -> None:
    """Refuse trained variables, by name, that are none of the graph's ``variables``: nothing gives them first values.

    Raises:
      JobError: there are some.
    """
    for name in trained:
        expected = "a trained variable in the collection tf.GraphKeys.GLOBAL_VARIABLES"
        job.check("model", expected, f"{name!r} that is in others only", name in variables)


def refuse_too_large(job: Job, profiles: Mapping[str, VariableProfile], cuts: Collection[str]) -> None:
    """Refuse variables that are too large to travel.

    Args:
      cuts: names of those that travel in slices.

    Raises:
      JobError: there are some.
    """
    for name, each in profiles.items():
        ok = name in cuts or each.bytes <= _LARGEST
        expected = (
            "variables of at most 2 GiB, where the optimizer is not one of TensorFlow's own or a constraint keeps"
            " them whole"
        )
        job.check("model", expected, f"one of {each.bytes:,} bytes as {name!r}", ok)


def refuse_cold_copies(job: Job, train: Train, variables: Mapping[str, Any], owned: Collection[str]) -> None:
    """Refuse, with a warm start, an optimizer's variables that begin as copies of the model's.

    They are made on the workers with the model, and would have its values from before the warm start.

    Args:
      owned: names of the variables that the optimizer made with the model.

    Raises:
      JobError: there are some.
    """
    of_model = {variable.op for name, variable in variables.items() if name not in owned}
    for name in owned if train.warm_start else ():
        found = f"one that begins with the model's values, as {name!r}"
        ok = not of_model & ancestors([variables[name].initial_value])
        job.check("optimizer", "variables of its own that do not copy the model's, with train.warm_start", found, ok)


def refuse_backup_of_changing(train: Train, reads_changing: bool) -> None:
    """Refuse backup workers with an update that reads what the model changes itself, such as a learning rate.

    The chief's own step, in which the change is made, may not be one of those that make an update.

    Raises:
      JobError: there are such workers.
    """
    if reads_changing and train.backup_workers:
        raise JobError(
            "train.backup_workers: expected 0 with an optimizer that reads a variable which the model changes in each"
            f" step, found {train.backup_workers}; let the optimizer compute it from the global step"
        )
