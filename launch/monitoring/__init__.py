"""``launch board`` and ``launch metrics``.

tensorboard  TensorBoard on the chief's host, seen from here
exporter     answer Prometheus with the newest run's status
metrics      a status in Prometheus' text format
"""
