"""The verbs of ``python -m launch.agent``, each of which runs as a short-lived process on a host.

check   this host's part of ``launch check``
status  the status of a run, from its agent or its files
runs    the runs of every name on this host
logs    the lines of tasks' logs, ordered by time
down    ends this host's part of a run for ``launch down``
sweep   what earlier runs have left on this host, and its removal
board   TensorBoard on a run's summaries
board_curve  the program that ``board`` starts: TensorBoard, and a writer of the learning curve
"""
