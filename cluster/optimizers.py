"""An optimizer from a job's ``args``, so that a hosts file can set it: ``return from_args(args)``.

args:
  optimizer: momentum          # sgd, momentum, nesterov, adagrad, adagrad_decay, rmsprop, adam, adam_async,
                               # adamw or ftrl
  learning_rate: 0.1           # and warmup, decay: see schedules.py
  momentum: 0.9                # momentum, nesterov, rmsprop
  beta1: 0.9                   # adam, adam_async, adamw; also beta2 (0.999)
  epsilon: 1.0e-8              # the same, and rmsprop (1.0e-10)
  weight_decay: 0.01           # adamw
  decay_factor: 0.9            # adagrad_decay; also decay_every (100000)

An author's own optimizer is a class below ``ByRule``.
"""

from collections import ChainMap
from typing import Any, Callable, Dict, Mapping, Tuple

from cluster.errors import JobError
from cluster.runtime.tf_compat import tf
from cluster.schedules import learning_rate, number
from cluster.updates.by_rule import ByRule
from cluster.updates.rules import AdagradDecay, AdamAsync, AdamW, GroupFtrl

__all__ = ["AdagradDecay", "AdamAsync", "AdamW", "ByRule", "GroupFtrl", "from_args"]

_Made = Tuple[Callable[..., Any], Dict[str, float]]
# For each name: a function of a learning rate that returns the optimizer, and its other settings with their defaults.
_OPTIMIZERS: Dict[str, _Made] = {
    "sgd": (tf.train.GradientDescentOptimizer, {}),
    "momentum": (tf.train.MomentumOptimizer, {"momentum": 0.9}),
    "nesterov": (
        lambda rate, momentum: tf.train.MomentumOptimizer(rate, momentum, use_nesterov=True),
        {"momentum": 0.9},
    ),
    "adagrad": (tf.train.AdagradOptimizer, {}),
    "adagrad_decay": (
        lambda rate, decay_factor, decay_every: AdagradDecay(rate, decay_factor, decay_every),
        {"decay_factor": 0.9, "decay_every": 100_000},
    ),
    "rmsprop": (tf.train.RMSPropOptimizer, {"momentum": 0.0, "epsilon": 1e-10}),
    "adam": (tf.train.AdamOptimizer, {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}),
    "adam_async": (AdamAsync, {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}),
    "adamw": (AdamW, {"weight_decay": 0.01, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}),
    "ftrl": (tf.train.FtrlOptimizer, {}),
}


def from_args(args: Mapping[str, Any], **defaults: Any) -> Any:
    """Return the ``tf.train.Optimizer`` that ``args`` describes; the function ignores other keys in ``args``.

    Args:
      defaults: the job's values for keys that ``args`` lacks, such as ``optimizer="momentum", learning_rate=0.1``.

    Raises:
      JobError: a value cannot be used; the error names the key, the expected value and the value found.
    """
    given: Any = args
    values = ChainMap(given, defaults, {"optimizer": "adam", "learning_rate": 0.001})  # reads no other key of args
    name = values["optimizer"]
    if name not in _OPTIMIZERS:
        raise JobError(f"args.optimizer: expected one of {', '.join(_OPTIMIZERS)}, found {name!r}")
    make, settings = _OPTIMIZERS[name]
    rate = learning_rate(values["learning_rate"], values.get("decay"), values.get("warmup", 0))
    return make(rate, **{key: number(key, values.get(key, default), low=0) for key, default in settings.items()})
