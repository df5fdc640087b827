"""The short-lived verbs of ``python -m launch.agent``.

check   this host's part of ``launch check``
status  the status of a run, from its agent or its files
runs    the runs of every name on this host
logs    the lines of task logs, ordered by time
down    the end of a run by an operator
sweep   the leftovers of earlier runs, and their removal
board   TensorBoard on a run's summaries
board_curve  its program, beside which the learning curve is written as summaries
"""
