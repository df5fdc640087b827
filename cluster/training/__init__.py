"""The training of one worker, from its graph to its outcome.

trainer           setup, describe, loop, and the end
worker_graph      the worker's graph, with the list of its callbacks
callbacks         the parts of training besides its steps: the methods that a callback may have
graph_builder     the model and the transport around it
stock_graph       the graph of TensorFlow's documentation, for ``train.sync: stock``
model_uses        a model's uses of its variables; refuses variables that servers cannot hold
joining           initializes variables, waits until they are, and checks that all workers built the same variables
step_errors       errors that a person can act on, in place of TensorFlow's errors
run_steps         the global step, the last step, step times and newest metrics, on ``ps:0``
reporting         a worker's reports: its first line, its progress, its present activity
job_warnings      args that no function reads, and workers that begin with the same batch
summaries         the values of a run that TensorBoard shows
chief_pauses      the chief's work between steps: save, measure and keep the best, compare
"""
