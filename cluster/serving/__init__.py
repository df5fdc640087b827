"""Export a trained model for serving: a SavedModel that needs TensorFlow alone.

predictor    the graph of the job's ``predict``: its inputs, and the variables that ``predict`` shares with ``model``
saved_model  the SavedModel of a checkpoint
"""
