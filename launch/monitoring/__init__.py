"""``launch board``, ``launch metrics`` and ``launch view``.

tensorboard    TensorBoard on the chief's host, seen from here
web_server     an HTTP server on this machine that answers while a verb runs
newest_status  the newest run's status, asked of the chief's host
newest_steps   the newest steps of tasks, asked of all their hosts
page_server    the page of the newest run, live
exporter       answer Prometheus with the newest run's status
metrics        a status in Prometheus' text format
"""
