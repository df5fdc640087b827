"""The features and labels of an Estimator as one batch of {name: tensor}, and back.

features {"user": …, "ad": …}, labels …              user, ad, labels
features …, labels {"click": …, "buy": …}            features, labels/click, labels/buy
"""

from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

from cluster.model.job_results import COUNTS
from cluster.model_fn.minimized import refuse

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


def joined(input_fn: Callable[..., Any], element: Tuple[Any, ...]) -> Tuple[BatchNames, Dict[str, Any]]:
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
