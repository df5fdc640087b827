"""A timeline of one step: what every device of a worker and every ps did, and what travelled between them.

recording  when a step is traced: its session remembers what TensorFlow measured
spans      what was measured, as spans of time on the devices
cargo      whose value, or gradient, a tensor is that travels
clocks     hosts whose clocks differ, put on the worker's
chrome     the spans as a file that Perfetto and chrome://tracing read
picture    such a file as a drawing: ``python -m cluster.trace FILE > step.svg``
"""
