"""Use checkpoints outside training: measure each of them, or export one as a SavedModel that needs only TensorFlow.

evaluator    measures each checkpoint while training continues
predictor    the graph of the job's ``predict``: its inputs, and the variables that ``predict`` shares with ``model``
saved_model  the SavedModel of a checkpoint
"""
