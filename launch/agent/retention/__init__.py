"""Past runs and unused code on this host, and their removal.

rules      the decision which runs of a name to remove, as a function of their age, size and results
measure    the size of a run's folder, its last use, and whether the folder has results
past_runs  the past runs and the shipped code on this host, and the reasons why some must stay
pruning    the removal itself, for ``launch prune`` and after the start of a run
"""
