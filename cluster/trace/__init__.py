"""A timeline of one step: the work of every device of a worker and every ps, and the transfers between them.

recording      when a step is traced: its session remembers what TensorFlow measured
spans          what was measured, as spans of time on the devices, on the worker's clock
payload        the variables whose values, or gradients, a transfer carries
chrome_format  the spans as a file that Perfetto and chrome://tracing read
svg            such a file as a drawing: ``python -m cluster.trace FILE > step.svg``
"""
