"""The graph that plain TensorFlow would build of a job on one worker.

model_graph  data, towers, gradients and evaluation of one worker
device_pool  the devices that the graph uses: its task's, or every worker's
mirrors      the worker's own variables, in its host's memory, and one read of each a step and device
model_state  variables that the model changes itself, and operations that run beside a step
shares       the part of each worker's gradient in a step
job_results  what a job's functions returned: the next batch, and what is refused, with a remedy
evaluation   the model's loss and metrics on held-out examples
"""
