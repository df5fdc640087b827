"""The calls of an author's ``model_fn`` and ``input_fn``, with the arguments that an Estimator passes."""

import copy
import functools
import inspect
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from cluster.model_fn.batch_names import BatchNames, joined
from cluster.model_fn.minimized import Minimized, noted, refuse, refuse_hooks, refuse_unfit
from cluster.runtime.tf_compat import tf
from cluster.training.job_warnings import ReadArgs

Function = Callable[..., Any]


class ModeKeys:
    """The modes of ``model_fn``: the values of ``tf.estimator.ModeKeys``, which TensorFlow 2.16 lacks."""

    TRAIN, EVAL, PREDICT = "train", "eval", "infer"


class ModelFn:
    """An author's ``model_fn``.

    It keeps the names of a batch and a copy of the optimizer from one call to the next, and no tensor of a graph.

    Args:
      model_fn, params, config: as for ``cluster.estimator.functions``.
      given: the author's function ``optimizer``, or None.
    """

    def __init__(self, model_fn: Function, params: Any, config: Any, given: Optional[Function]):
        self.author, self._params, self._config, self._given = model_fn, params, config, given
        self._optimizer: Any = None
        self.names = BatchNames([], [])

    # -- data

    def shard(self, input_fn: Function, task: Any, args: Mapping[str, Any]) -> Any:
        """Return the dataset of one worker."""
        if "input_context" in _free(input_fn):
            context = tf.distribute.InputContext(task.num_workers, task.worker_index, task.num_workers)
            return self.dataset(input_fn, ModeKeys.TRAIN, args, input_context=context)
        return self.dataset(input_fn, ModeKeys.TRAIN, args).shard(task.num_workers, task.worker_index)

    def dataset(self, input_fn: Any, mode: str, args: Mapping[str, Any], **more: Any) -> Any:
        """Return the dataset of an ``input_fn`` as batches of {name: tensor}."""
        found = _call(input_fn, mode=mode, params=self._merged(args), config=self._config, **more)
        if not isinstance(found, tf.data.Dataset):
            refuse(input_fn, "a tf.data.Dataset", f"{found}; return the dataset, and not what its iterator gives")

        @tf.autograph.experimental.do_not_convert
        def named(*element: Any) -> Dict[str, Any]:
            self.names, batch = joined(input_fn, element)
            return batch

        return found.map(named)

    def _merged(self, args: Mapping[str, Any]) -> Any:
        """Return the author's ``params`` with the values of ``args``, as a new object for each call."""
        params = copy.deepcopy({} if self._params is None else self._params)
        if hasattr(params, "override_from_dict"):  # HParams
            params.override_from_dict({name: args[name] for name in args if name in params})
        elif type(params) is dict and isinstance(args, ReadArgs):
            return args.over(params)
        elif isinstance(params, dict):
            params.update(args)
        return params

    # -- model

    def losses(self, training: bool, args: Mapping[str, Any], batch: Mapping[str, Any]) -> Any:
        """Return the loss of a batch, once for each example; in an evaluation, once for the batch, and the metrics.

        An Estimator evaluates the mean over batches.

        Raises:
          JobError: ``model_fn`` returns no loss that is one number, or this project would not do the same.
        """
        mode = ModeKeys.TRAIN if training else ModeKeys.EVAL
        spec, calls = self._call(mode, self.names.features_in(batch), self.names.labels_in(batch), args)
        if spec.loss is None or spec.loss.shape.ndims not in (0, None):
            refuse(self.author, f"a loss that is one number, in the mode {mode}", spec.loss)
        loss = tf.cast(spec.loss, tf.float32) if spec.loss.dtype.size < tf.float32.size else spec.loss
        if not training:
            return tf.fill([1], loss), self._metrics(spec)
        refuse_unfit(self.author, spec, calls, self._given is not None)
        self._optimizer = calls[0].optimizer
        return tf.fill([_examples(batch)], loss)

    def _metrics(self, spec: Any) -> Dict[str, Any]:
        metrics = dict(spec.eval_metric_ops or {})
        for name, found in metrics.items():
            if not isinstance(found, tuple) or getattr(getattr(found[0], "shape", None), "ndims", -1) != 0:
                refuse(self.author, f"one number and its update, as of tf.metrics, as the metric {name!r}", found)
        return metrics

    def optimizer(self, args: Mapping[str, Any]) -> Any:
        """Return a new optimizer: the one that ``model_fn`` has minimised its loss with, or the given one."""
        return self._given(args) if self._given else copy.deepcopy(self._optimizer)

    def predictions(self, args: Mapping[str, Any], batch: Mapping[str, Any]) -> Any:
        """Return the predictions for a batch of features."""
        return self._call(ModeKeys.PREDICT, self.names.features_in(batch), None, args)[0].predictions

    def _call(self, mode: str, features: Any, labels: Any, args: Mapping[str, Any]) -> Tuple[Any, List[Minimized]]:
        if labels is not None and "labels" not in _free(self.author):
            refuse(self.author, "a parameter labels, since the dataset has labels", "none")
        copies = mode == ModeKeys.TRAIN and self._given is None
        with noted(self.author, copies) as calls:
            spec = _call(
                self.author, features, labels=labels, mode=mode, params=self._merged(args), config=self._config
            )
        if not hasattr(spec, "train_op"):
            refuse(self.author, "an EstimatorSpec as the result of model_fn", spec)
        refuse_hooks(self.author, spec)
        return spec, calls


class Predict:
    """The job's function ``predict``. Its parameters are the features, which are known once ``inputs`` was called."""

    def __init__(self, of: ModelFn):
        self._of, self.__wrapped__ = of, of.author

    @property
    def __signature__(self) -> inspect.Signature:
        """Return the signature.

        Raises:
          JobError: the name of a feature is no name of a parameter.
        """
        names = self._of.names.of_features
        wrong = [name for name in names if not name.isidentifier() or name.startswith("_") or name == "self"]
        if wrong:
            refuse(self._of.author, "for serving, features whose names may be parameters", repr(wrong[0]))
        return inspect.Signature([inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in (*names, "args")])

    def __call__(self, args: Mapping[str, Any], **batch: Any) -> Any:
        """Return the predictions for a batch of features."""
        return self._of.predictions(args, batch)


def _call(function: Function, *features: Any, **named: Any) -> Any:
    """Call a function with those of the named arguments for which it has free parameters."""
    known = _free(function)
    return function(*features, **{name: value for name, value in named.items() if name in known})


def _free(function: Function) -> List[str]:
    """Return the names of a function's parameters, without those that a ``functools.partial`` gives."""
    names, part = list(inspect.signature(function).parameters), function
    while isinstance(part, functools.partial):
        names, part = [name for name in names if name not in part.keywords], part.func
    return names


def _examples(batch: Mapping[str, Any]) -> Any:
    """Return the number of examples in a batch."""
    first = tf.nest.flatten(dict(batch))[0]
    if isinstance(first, tf.SparseTensor):
        return first.dense_shape[0]
    return first.nrows() if isinstance(first, tf.RaggedTensor) else tf.shape(first)[0]
