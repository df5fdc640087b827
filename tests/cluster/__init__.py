"""Tests of training."""

import tests.support.training  # noqa: F401  before TensorFlow is loaded: it sets how many threads a server makes
