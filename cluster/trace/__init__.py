"""A timeline of one step: the work of every device of a worker and every ps, and the transfers between them.

recording      when a step is traced, what TensorFlow measured, and the variables that its transfers carry
spans          what was measured, as spans of time on the devices, on the worker's clock
chrome_format  the spans as a file that Perfetto and chrome://tracing read, and its drawing:
               ``python -m cluster.trace FILE > step.svg``
"""
