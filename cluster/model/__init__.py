"""The graph that plain TensorFlow would build of a job on one worker.

model_graph        data, towers, gradients and evaluation of one worker
device_pool        the devices that the graph uses: its task's, or every worker's
mirrors            the worker's own variables, in its host's memory
reads              one read of a variable a step and device
state              variables that the model changes itself
borrowed           copies of the model that depend on each other
shares             the part of each worker's gradient in a step
batches            the next batch of a job's dataset
remedies           what an author may write in the place of what was refused
evaluation         the model's loss and metrics on held-out examples
update_operations  operations that run beside a step
seeds              the seed of a worker's graph
"""
