"""Refuse variables that the servers cannot hold, before training."""

from typing import Any, Collection, Mapping

from cluster.job import Job
from cluster.variables.profile import VariableProfile

_LARGEST = (1 << 31) - 1  # bytes that TensorFlow sends in one piece


def refuse_unknown_shapes(job: Job, variables: Mapping[str, Any]) -> None:
    """Refuse variables, by name, whose shape is not known.

    Raises:
      JobError: there are some.
    """
    for name, variable in variables.items():
        known = variable.shape.is_fully_defined()
        job.check("model", "variables of known shape", f"one of shape {variable.shape} as {name!r}", known)


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
