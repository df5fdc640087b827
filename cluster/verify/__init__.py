"""The comparison of a distributed synchronous run with one process, step by step (``launch verify``).

The run, the one process and plain TensorFlow train on the same batches. The one process computes with the run's code,
and must agree with the run to the bit. Plain TensorFlow computes with the author's functions alone, and must agree with
the run except for rounding.

digests         each worker's batch and gradients, in two numbers, which the worker reports to the chief in every step
givens          random numbers and rows of tables, which only the workers have
verified_run    a copy of the run in the chief's process: its job, the batch of every worker, and all batches as one
whole_model     the model with the towers of all workers, on one set of variables, which are cut as on the servers
one_process     plain TensorFlow's training on these batches
named_values    values of variables in slices, joined by name, and the first value that differs
own_gradients   gradients that TensorFlow computes for an optimizer, as tensors that can be fed
plain           the author's functions in a script for one machine
plain_step      one step of plain TensorFlow from the run's values, and the allowed difference of a run
kinds           the probable mistake behind a difference, in words
beside_plain    compares each step of a run with a step of plain TensorFlow
verification    the chief's part: compares after every step
"""
