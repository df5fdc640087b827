"""One worker, from its graph to its outcome.

trainer           setup, describe, loop, and the end
worker_graph      the worker's graph, with the list of all that acts beside its steps
callbacks         what acts beside steps: the methods that a callback may have
graph_builder     the model and the transport around it
stock_graph       the graph of TensorFlow's documentation, for ``train.sync: stock``
model_uses        how a model uses its variables; refuses those that servers cannot hold
joining           who gives variables their values, who waits for them, and whether all built the same ones
step_errors       what a person can act on, in place of TensorFlow's error
run_steps         the global step, the last one, step times and newest metrics, on ``ps:0``
reporting         what a worker reports: its first line, its progress, its present activity
job_warnings      args that no function reads, and workers that begin with the same batch
summaries         what TensorBoard shows of a run
chief_pauses      what a chief does between steps: save, measure and keep the best, compare
"""
