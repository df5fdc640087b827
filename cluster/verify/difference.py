"""The first variable that differs between the servers and one process, in words."""

from typing import Any, Mapping, Optional, Sequence

import numpy as np


def difference(step: int, found: Mapping[str, Any], expected: Mapping[str, Any]) -> Optional[str]:
    """Compare variables to the bit, in the order of ``found``; None where all are equal.

    Args:
      step: the global step after which both were read.
      found: the servers' values by name; ``expected`` has those of one process under the same names.
    """
    for name, value in found.items():
        one, other = np.asarray(value), np.asarray(expected[name])
        if one.dtype != other.dtype or one.shape != other.shape:
            return f"step {step}: servers' {name} is {_kind(one)}, that of one process {_kind(other)}"
        unlike = _unlike(one, other)
        if unlike.any():
            return (
                f"step {step}: servers' {name} differs from one process in {unlike.sum():,} of {unlike.size:,}"
                f" elements{_at_most(one, other)}"
            )
    return None


def unlike_batch(step: int, found: Sequence[int], expected: Sequence[int]) -> Optional[str]:
    """Name the first worker whose batch was another than the chief has read for it; None where all are equal.

    Args:
      found: digests of the workers' batches; ``expected`` has those of what the chief has read.
    """
    for worker, (one, other) in enumerate(zip(found, expected)):
        if one != other:
            return (
                f"worker {worker}'s batch of step {step} differs from the same batch read by the chief: its input does"
                " not give the same batches twice; give every shuffle a seed, keep the order of what is read in"
                " parallel, and let the chief's host have the same files"
            )
    return None


def unlike_gradient(found: Sequence[int], expected: Sequence[int], hosts: Sequence[str]) -> str:
    """Return the end of a message: which worker, if any, gave another gradient.

    The other gradient is that which the chief's host computes of the same batch.

    Args:
      found: digests of the gradients that the workers have given; ``expected`` has those of one process.
      hosts: of the workers, the chief's first.
    """
    workers = [worker for worker, (one, other) in enumerate(zip(found, expected)) if one != other]
    if not workers:
        return "; every worker gave the right gradient, so the sum or the update differs"
    is_here = hosts[workers[0]] == hosts[0]
    advice = (
        "look in the model for operations without an order, as this is the chief's own host"
        if is_here
        else "compare the processor and the libraries of its host with the chief's"
    )
    return f"; worker {workers[0]} gave another gradient than one process, from the same batch and variables; {advice}"


def _unlike(one: Any, other: Any) -> Any:
    """Return the elements that have other bits, bool [elements].

    -0.0 is not 0.0, and a NaN is itself.
    """
    size = max(one.dtype.itemsize, 1)
    return (_bits(one).reshape(-1, size) != _bits(other).reshape(-1, size)).any(axis=1)


def _bits(values: Any) -> Any:
    return np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)


def _at_most(one: Any, other: Any) -> str:
    if one.dtype.kind not in "fiu":
        return ""
    with np.errstate(all="ignore"):
        largest = np.nanmax(np.abs(one.astype(np.float64) - other.astype(np.float64)))
    return f", by at most {largest:.2g}"


def _kind(values: Any) -> str:
    return f"{values.dtype} {list(values.shape)}"
