"""The short-lived verbs of ``python -m launch.agent``.

check   this host's part of ``launch check``
status  the status of a run, from its agent or its files
runs    the runs of every name that this host remembers
logs    lines of task logs, in the order of time
down    the end of a run from outside
sweep   the leftovers of earlier runs, and their removal
board   TensorBoard beside a run's summaries
"""
