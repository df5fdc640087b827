"""Train an Estimator's ``model_fn``: make a job's functions of the functions that an Estimator takes.

    from cluster import estimator

    inputs, model, optimizer, evaluate, predict = estimator.functions(model_fn, train_input_fn, eval_input_fn)

``model_fn`` is called in the mode TRAIN for each tower, and in the modes EVAL and PREDICT for evaluation and serving.
Its loss is one number for a batch. A step minimises the mean of the towers' losses, as
``tf.train.SyncReplicasOptimizer`` does. This is the loss of one process with the whole batch if the loss is a mean over
examples.
"""

import inspect
from typing import Any, Callable, Mapping, NamedTuple, Optional, Tuple

from cluster.model_fn.model_calls import ModeKeys, ModelFn, Predict

__all__ = ["EstimatorSpec", "ModeKeys", "functions"]

Function = Callable[..., Any]


class EstimatorSpec(NamedTuple):
    """The result of ``model_fn``; it takes the place of ``tf.estimator.EstimatorSpec``, which TensorFlow 2.16 lacks."""

    mode: str
    predictions: Any = None
    loss: Any = None
    train_op: Any = None
    eval_metric_ops: Optional[Mapping[str, Any]] = None
    export_outputs: Any = None
    training_chief_hooks: Any = None
    training_hooks: Any = None
    scaffold: Any = None


def functions(
    model_fn: Function,
    train_input_fn: Function,
    eval_input_fn: Optional[Function] = None,
    *,
    params: Any = None,
    config: Any = None,
    optimizer: Optional[Function] = None,
) -> Tuple[Function, Function, Function, Optional[Function], Function]:
    """Return the functions ``inputs``, ``model``, ``optimizer``, ``evaluate`` and ``predict`` of a job.

    Each of them raises JobError for what it cannot carry out as an Estimator would.

    Args:
      model_fn: takes features, and labels, mode, params and config if it has these parameters.
      train_input_fn: returns a dataset of features, or of pairs of features and labels, in batches of
        ``task.batch_size``. Each is a tensor, or a dictionary of tensors. Worker i of n takes the batches i, i + n,
        i + 2n, and so on. If the function has a parameter ``input_context``, it chooses the worker's batches itself.
      eval_input_fn: returns a finite dataset of the same kind; None for no evaluation.
      params: the parameter ``params``: a dictionary, to which the hosts file's ``args`` are added, or HParams, whose
        values they replace.
      config: the parameter ``config``.
      optimizer: a function from the job's ``args`` to the optimizer, in place of the one that ``model_fn`` makes. It is
        needed where that one has tensors, such as a learning rate that decays, or where there are several.
    """
    of = ModelFn(model_fn, params, config, optimizer)

    def inputs(task: Any, args: Mapping[str, Any]) -> Any:
        return of.shard(train_input_fn, task, args)

    def model(training: bool = True, args: Optional[Mapping[str, Any]] = None, **batch: Any) -> Any:
        return of.losses(training, args or {}, batch)

    def evaluate(task: Any, args: Mapping[str, Any]) -> Any:
        return of.dataset(eval_input_fn, ModeKeys.EVAL, args)

    return (
        _by(train_input_fn, inputs),
        _by(model_fn, model),
        _by(optimizer or model_fn, of.optimizer),
        _by(eval_input_fn, evaluate) if eval_input_fn else None,
        Predict(of),
    )


def _by(author: Function, function: Function) -> Function:
    """Return a function with the signature of ``function``; errors name the place of the author's."""

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    wrapped.__wrapped__ = author  # type: ignore[attr-defined]
    wrapped.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return wrapped
