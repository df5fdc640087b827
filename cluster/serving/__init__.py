"""Export a trained model for serving: a SavedModel that needs TensorFlow alone.

inputs     the tensors that a served model is fed, from the batches that it trained with
predictor  the graph of the job's ``predict``, which shares its variables with ``model``
export     the SavedModel of a checkpoint
"""
