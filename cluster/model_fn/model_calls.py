"""The calls of an author's ``model_fn`` and ``input_fn``, with the arguments that an Estimator passes."""

import copy
import inspect
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from cluster.model_fn.batch_names import BatchNames, joined
from cluster.model_fn.minimized import Minimized, copied, noted, refuse, refuse_unfit
from cluster.runtime.tf_compat import tf


class ModeKeys:
    """The modes of ``model_fn``: the values of ``tf.estimator.ModeKeys``, which TensorFlow 2.16 lacks."""

    TRAIN, EVAL, PREDICT = "train", "eval", "infer"


class ModelFn:
    """An author's ``model_fn``.

    It keeps the names of a batch and a copy of the optimizer from one call to the next, and no tensor of a graph.

    Args:
      model_fn, params: as for ``cluster.estimator.functions``.
      given: the author's function ``optimizer``, or None.
    """

    def __init__(self, model_fn: Callable[..., Any], params: Any, given: Optional[Callable[..., Any]]):
        self.author, self._params, self._given = model_fn, params, given
        self._optimizer: Any = None
        self.names = BatchNames([], [])

    # -- data

    def shard(self, input_fn: Callable[..., Any], task: Any, args: Mapping[str, Any]) -> Any:
        """Return the dataset of one worker."""
        if "input_context" in inspect.signature(input_fn).parameters:
            context = tf.distribute.InputContext(task.num_workers, task.worker_index, task.num_workers)
            return self.dataset(input_fn, ModeKeys.TRAIN, args, input_context=context)
        return self.dataset(input_fn, ModeKeys.TRAIN, args).shard(task.num_workers, task.worker_index)

    def dataset(self, input_fn: Any, mode: str, args: Mapping[str, Any], **more: Any) -> Any:
        """Return the dataset of an ``input_fn`` as batches of {name: tensor}."""
        found = _call(input_fn, mode=mode, params=self._merged(args), config=None, **more)
        if not isinstance(found, tf.data.Dataset):
            refuse(input_fn, "a tf.data.Dataset", found)

        @tf.autograph.experimental.do_not_convert
        def named(*element: Any) -> Dict[str, Any]:
            self.names, batch = joined(input_fn, element)
            return batch

        return found.map(named)

    def _merged(self, args: Mapping[str, Any]) -> Any:
        is_plain = self._params is None or isinstance(self._params, dict)
        return copy.deepcopy({**(self._params or {}), **args} if is_plain else self._params)

    # -- model

    def losses(self, training: bool, args: Mapping[str, Any], batch: Mapping[str, Any]) -> Any:
        """Return the loss of a batch, once for each example; in an evaluation, together with the metrics.

        Raises:
          JobError: ``model_fn`` returns no loss that is one number, or a training step would leave something out.
        """
        mode = ModeKeys.TRAIN if training else ModeKeys.EVAL
        spec, calls = self._call(mode, *self.names.split(batch), args)
        if spec.loss is None or spec.loss.shape.ndims not in (0, None):
            refuse(self.author, f"a loss that is one number, in the mode {mode}", spec.loss)
        losses = tf.fill([_examples(batch)], spec.loss)
        if not training:
            return losses, dict(spec.eval_metric_ops or {})
        refuse_unfit(self.author, spec, calls, self._given is not None)
        self._optimizer = None if self._given else copied(self.author, calls[0].optimizer)
        return losses

    def optimizer(self, args: Mapping[str, Any]) -> Any:
        """Return a new optimizer: the one that ``model_fn`` has minimised its loss with, or the given one."""
        return self._given(args) if self._given else copy.deepcopy(self._optimizer)

    def predictions(self, args: Mapping[str, Any], batch: Mapping[str, Any]) -> Any:
        """Return the predictions for a batch of features."""
        return self._call(ModeKeys.PREDICT, self.names.split(batch)[0], None, args)[0].predictions

    def _call(self, mode: str, features: Any, labels: Any, args: Mapping[str, Any]) -> Tuple[Any, List[Minimized]]:
        with noted(self.author) as calls:
            spec = _call(self.author, features, labels=labels, mode=mode, params=self._merged(args), config=None)
        if not hasattr(spec, "train_op"):
            refuse(self.author, "an EstimatorSpec as the result of model_fn", spec)
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
        wrong = [name for name in names if not name.isidentifier()]
        if wrong:
            refuse(self._of.author, "for serving, features whose names may be parameters", repr(wrong[0]))
        return inspect.Signature([inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in (*names, "args")])

    def __call__(self, args: Mapping[str, Any], **batch: Any) -> Any:
        """Return the predictions for a batch of features."""
        return self._of.predictions(args, batch)


def _call(function: Callable[..., Any], *features: Any, **named: Any) -> Any:
    """Call a function with those of the named arguments for which it has parameters."""
    known = inspect.signature(function).parameters
    return function(*features, **{name: value for name, value in named.items() if name in known})


def _examples(batch: Mapping[str, Any]) -> Any:
    """Return the number of examples in a batch."""
    first = next(iter(batch.values()))
    if isinstance(first, tf.SparseTensor):
        return first.dense_shape[0]
    return first.nrows() if isinstance(first, tf.RaggedTensor) else tf.shape(first)[0]
