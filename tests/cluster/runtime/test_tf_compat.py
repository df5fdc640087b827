"""TensorFlow as this project uses it."""

from typing import Any

import pytest
from tensorflow.python.util import deprecation

from cluster.runtime.tf_compat import tf


def test_nothing_is_prepared_for_advice_that_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def prepare(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("an operation's arguments were bound to their names")

    monkeypatch.setattr(deprecation.tf_inspect, "getcallargs", prepare)
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(tf.reduce_sum(tf.ones([3]), reduction_indices=0)) == 3
