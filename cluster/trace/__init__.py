"""A timeline of one step: what every device of a worker and every ps did, and what travelled between them.

recording.py  when a step is traced: its session remembers what TensorFlow measured
spans.py      what was measured, as spans of time on the devices
cargo.py      whose value, or gradient, a tensor is that travels
clocks.py     hosts whose clocks differ, put on the worker's
chrome.py     the spans as a file that Perfetto and chrome://tracing read
picture.py    such a file as a drawing: ``python -m cluster.trace FILE > step.svg``
"""
