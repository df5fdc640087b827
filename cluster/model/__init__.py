"""The graph that plain TensorFlow would build for a job on one worker.

model_graph  data, towers, gradients and evaluation of one worker
device_pool  the devices that the graph uses: those of its own task, or of every worker
mirrors      the worker's own variables, in its host's memory, which a step reads once for each device
model_state  variables that the model changes itself, and operations that run in addition to a step
shares       the weight of each worker's gradient in a step
job_results  checks of what a job's functions return: the next batch, the optimizer; errors that name a remedy
evaluation   the model's loss and metrics on held-out examples
"""
