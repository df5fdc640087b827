"""One worker, from its graph to its outcome; an evaluator likewise.

trainer           setup, describe, loop, and the end
graph_builder     the worker's graph: its model and the transport around it
stock_graph       the graph of TensorFlow's documentation, for ``train.sync: stock``
unfit_variables   variables that servers cannot hold
joining           who gives variables their values, who waits for them, and whether all built the same ones
step_errors       what a person can act on, in place of TensorFlow's error
run_steps         the global step, the last one, and how long each worker's steps take, on ``ps:0``
reporting         what a worker reports: its first line, then its progress
job_warnings      args that no function reads, and workers that begin with the same batch
summaries         what TensorBoard shows of a run
training_metrics  the metrics of the newest examples of all workers
best_checkpoint   the best checkpoint by a metric on held-out data, and an early end
evaluator         measures each checkpoint beside the training
"""
