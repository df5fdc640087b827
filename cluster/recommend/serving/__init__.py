"""Keep a served model up to date: apply files of rows and variables that training has changed (``launch export``).

A program that serves a model needs numpy alone for ``ServedModel``, and TensorFlow for ``loaded_model.LoadedModel``.

delta_file    the file of the differences between two versions of a model
served_model  a model's rows and variables in numpy, changed by deltas; places of rows by their ids
loaded_model  a SavedModel in TensorFlow, changed by deltas, and written as the next SavedModel
changes       the differences between two checkpoints
"""

from cluster.errors import DeltaError
from cluster.recommend.serving.delta_file import next_delta
from cluster.recommend.serving.served_model import ServedModel

__all__ = ["DeltaError", "ServedModel", "next_delta"]
