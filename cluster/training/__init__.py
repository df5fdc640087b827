"""One worker, from its graph to its outcome; an evaluator likewise.

trainer          setup, describe, loop, and the end
builder          the worker's graph: its model and the transport around it
graph_agreement  a check that all workers built the same variables
global_step      the step that counts, on the servers
progress         what a worker reports while it trains
summaries        what TensorBoard shows of a run
step_times       how long each worker's steps take
evaluator        measures each checkpoint beside the training
"""
