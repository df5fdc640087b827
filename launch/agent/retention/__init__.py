"""Past runs and unused code on this host, and their removal.

rules      which runs of a name go, as a function of what is known of them
measure    the size of a run's folder, its last use, and whether it holds results
past_runs  the runs and the shipped code of this host, and the reasons for which some must stay
pruning    all of it together: look, decide, remove; for ``launch prune``, and beside a run that has just started
"""
