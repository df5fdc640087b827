"""Past runs and unused code on this host, and their removal.

rules      the decision which runs of a name to remove, as a function of their facts
measure    the size of a run's folder, its last use, and whether the folder has results
past_runs  the runs and the shipped code of this host, and the reasons why some must stay
pruning    the removal: look, decide, remove; for ``launch prune``, and after the start of a run
"""
