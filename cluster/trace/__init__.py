"""A timeline of one step: the work of every device of a worker and every ps, and the transfers between them.

recording      the traced step, TensorFlow's measurements, and the variables in its transfers
spans          the measurements as spans of time on the devices, on the worker's clock
chrome_format  the spans as a file that Perfetto and chrome://tracing read, and a drawing of the file:
               ``python -m cluster.trace FILE > step.svg``
"""
