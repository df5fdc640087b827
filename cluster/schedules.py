"""Learning rates that change with the global step, described by a job's ``args``.

    warmup: 500                                                  linear from rate / 500 to the rate in 500 steps
    decay: {kind: piecewise, steps: [30, 60], factors: [0.1, 0.01]}    the rate times 0.1 from step 30, 0.01 from 60
    decay: {kind: exponential, every: 1000, factor: 0.96}              the rate times 0.96 ** (step / 1000)
    decay: {kind: cosine, steps: 9000, floor: 0.01}                    half a cosine down to 0.01 of the rate

Warmup and decay multiply; steps are absolute global steps, so a resumed run continues at the same rate.
"""

import math
from typing import Any, Callable, Dict, List, Mapping, Optional

from cluster.errors import JobError
from cluster.runtime.tf_compat import tf


def learning_rate(rate: float, decay: Optional[Mapping[str, Any]] = None, warmup: float = 0) -> Any:
    """Return the learning rate of the current global step.

    Without decay and warmup, the result is the number ``rate``; otherwise it is a float32 scalar.

    Raises:
      JobError: ``decay`` has an unknown key or lacks a key, or a value cannot be used.
    """
    rate = number("learning_rate", rate)
    warmup = number("warmup", warmup, low=0)
    factors = [_decay(decay)] if decay is not None else []
    factors += [lambda step: tf.minimum(1.0, (step + 1) / warmup)] if warmup else []
    if not factors:
        return rate
    step = tf.cast(tf.train.get_or_create_global_step().read_value(), tf.float32)
    for factor in factors:
        rate = rate * factor(step)
    return rate


def number(key: str, value: Any, low: float = -math.inf) -> float:
    """Return ``value`` as a float, if it is a finite number of at least ``low``.

    Raises:
      JobError: ``value`` is no such number; the error names ``key``.
    """
    ok = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= low
    expected = "a number" if low == -math.inf else f"a number from {low:g}"
    hint = "; YAML reads 1e-3 as text, write 1.0e-3" if isinstance(value, str) else ""
    _require(ok, key, expected, value, hint)
    return float(value)


def _decay(decay: Mapping[str, Any]) -> Callable[[Any], Any]:
    _require(isinstance(decay, Mapping), "decay", "a mapping such as {kind: cosine, steps: 9000}", decay)
    kind = decay.get("kind")
    _require(kind in _KINDS, "decay.kind", f"one of {', '.join(_KINDS)}", kind)
    make, keys = _KINDS[str(kind)]
    values = {key: value for key, value in decay.items() if key != "kind"}
    for key in values:
        _require(key in keys, "decay", f"the keys kind, {', '.join(keys)}", key)
    for key, default in keys.items():
        _require(default is not None or key in values, f"decay.{key}", f"a value, as decay.kind is {kind}", "none")
    factor: Callable[[Any], Any] = make({**keys, **values})
    return factor


def _piecewise(values: Mapping[str, Any]) -> Callable[[Any], Any]:
    steps, factors = (_numbers(f"decay.{key}", values[key]) for key in ("steps", "factors"))
    _require(steps == sorted(set(steps)), "decay.steps", "steps that increase", values["steps"])
    same = len(steps) == len(factors)
    _require(same, "decay.factors", f"one factor for each of the {len(steps)} steps", values["factors"])

    def factor(step: Any) -> Any:
        passed = tf.reduce_sum(tf.cast(step >= tf.constant(steps), tf.int32))
        return tf.gather(tf.constant([1.0, *factors]), passed)

    return factor


def _exponential(values: Mapping[str, Any]) -> Callable[[Any], Any]:
    every = number("decay.every", values["every"], low=1)
    base = number("decay.factor", values["factor"], low=0)
    return lambda step: tf.pow(base, step / every)


def _cosine(values: Mapping[str, Any]) -> Callable[[Any], Any]:
    steps = number("decay.steps", values["steps"], low=1)
    floor = number("decay.floor", values["floor"], low=0)
    return lambda step: floor + (1 - floor) * 0.5 * (1 + tf.cos(math.pi * tf.minimum(1.0, step / steps)))


# For each kind: its function, and its keys with their defaults; None for a required key.
_KINDS: Dict[str, Any] = {
    "piecewise": (_piecewise, {"steps": None, "factors": None}),
    "exponential": (_exponential, {"every": None, "factor": None}),
    "cosine": (_cosine, {"steps": None, "floor": 0.0}),
}


def _numbers(key: str, values: Any) -> List[float]:
    _require(isinstance(values, (list, tuple)) and len(values) > 0, key, "a list of numbers", values)
    return [number(key, value, low=0) for value in values]


def _require(ok: bool, key: str, expected: str, found: Any, hint: str = "") -> None:
    if not ok:
        raise JobError(f"args.{key}: expected {expected}, found {found!r}{hint}")
