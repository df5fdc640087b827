"""The distributed synchronous run beside one process on the same batches, step by step (``launch verify``).

digests       which batch each worker has had, and which gradients it has given
reader        the batches of every worker once more, in the chief's process
whole_model   the model with the towers of all workers, on one set of variables
one_process   what plain TensorFlow makes of these batches
pieces        its variables, cut as the servers' are
randomness    models that cannot compute the same twice
difference    the first variable that differs, in words
verification  the chief's part: compares after every step
"""
