"""``launch metrics`` and ``launch view``.

web_server    an HTTP server on this machine that answers while a verb runs
newest_state  fetch the newest run's status and the newest steps of its tasks in bounded time
page_server   the page of the newest run, live
exporter      answer Prometheus with the newest run's status in its text format
"""
