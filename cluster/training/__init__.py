"""One worker, from its graph to its outcome; an evaluator likewise.

trainer           setup, describe, loop, and the end
builder           the worker's graph: its model and the transport around it
stock_graph       the graph of TensorFlow's documentation, for ``train.sync: stock``
refusals          variables that servers cannot hold
joining           who gives variables their values, and who waits for them
first_values      the first values of a new run, a warm start's among them
graph_agreement   a check that all workers built the same variables
step_errors       what a person can act on, in place of TensorFlow's error
global_step       the step that counts, on the servers
description       a worker's first line
first_batches     workers that begin with the same batch
read_args         the job's args, and those of them that no function reads
progress          what a worker reports while it trains
summaries         what TensorBoard shows of a run
step_times        how long each worker's steps take
training_metrics  the metrics of the newest examples of all workers
last_step         the step at which training ends, which the chief may bring forward
best_checkpoint   the best checkpoint by a metric on held-out data, and an early end
evaluator         measures each checkpoint beside the training
"""
