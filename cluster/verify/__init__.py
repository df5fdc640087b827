"""The distributed synchronous run beside one process, step by step (``launch verify``).

Both train on the same batches.

digests       each worker's batch and gradients, in two numbers
reader        the batches of every worker once more, in the chief's process
whole_model   the model with the towers of all workers, on one set of variables
one_process   plain TensorFlow's training on these batches
pieces        its variables, cut as the servers' are
randomness    models that cannot compute the same twice
difference    the first variable that differs, in words
verification  the chief's part: compares after every step
"""
