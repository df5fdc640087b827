"""The calls of an author's ``model_fn`` and ``input_fn``, with the arguments that an Estimator passes.

Features and labels of an Estimator are one batch of {name: tensor}:

features {"user": …, "ad": …}, labels …              user, ad, labels
features …, labels {"click": …, "buy": …}            features, labels/click, labels/buy
"""

import copy
import functools
import inspect
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

from cluster.model.job_results import COUNTS
from cluster.model_fn.minimized import Minimized, noted, refuse, refuse_hooks, refuse_unfit
from cluster.runtime.tf_compat import tf
from cluster.training.job_warnings import ReadArgs

Function = Callable[..., Any]
_FEATURES, _LABELS = "features", "labels"
_TAKEN = (_LABELS, "args", "training")  # parameters of a job's ``model``


class BatchNames(NamedTuple):
    """The names of the columns; no tensor of any graph.

    ``features`` and ``labels`` are None for one tensor. ``labels`` is [] for no labels.
    """

    features: Optional[List[str]]
    labels: Optional[List[str]]

    @property
    def of_features(self) -> List[str]:
        """Return the names of the features in a batch."""
        return [_FEATURES] if self.features is None else self.features

    def features_in(self, batch: Mapping[str, Any]) -> Any:
        """Return the features of a batch as the author's dataset has them."""
        return batch[_FEATURES] if self.features is None else {name: batch[name] for name in self.features}

    def labels_in(self, batch: Mapping[str, Any]) -> Any:
        """Return the labels of a batch as the author's dataset has them; None for no labels."""
        if self.labels is None:
            return batch[_LABELS]
        return {name: batch[f"{_LABELS}/{name}"] for name in self.labels} or None


def _joined(input_fn: Callable[..., Any], element: Tuple[Any, ...]) -> Tuple[BatchNames, Dict[str, Any]]:
    """Return the columns of one element of a dataset, and the element as {name: tensor}.

    Raises:
      JobError: the element has other parts than features and labels, or a feature has a name that is taken.
    """
    if len(element) > 2:
        refuse(input_fn, "a dataset of features, or of pairs of features and labels", f"{len(element)} parts")
    features, labels = element if len(element) == 2 else (element[0], {})
    labels = {} if labels is None else labels
    named = features if isinstance(features, dict) else {_FEATURES: features}
    if COUNTS in named:
        step = "return it from a function `inputs` of your own, with a loss of each example"
        refuse(input_fn, "another dataset than one of cluster.shards", f"one; {step}")
    wrong = [name for name in named if name in _TAKEN or not isinstance(name, str)]
    if wrong:
        refuse(input_fn, f"features with names that are not {', '.join(_TAKEN)}", repr(wrong[0]))
    of_labels = {f"{_LABELS}/{name}": each for name, each in labels.items()} if isinstance(labels, dict) else None
    names = BatchNames(
        list(features) if isinstance(features, dict) else None, list(labels) if isinstance(labels, dict) else None
    )
    return names, {**named, **({_LABELS: labels} if of_labels is None else of_labels)}


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
            self.names, batch = _joined(input_fn, element)
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
