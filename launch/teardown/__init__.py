"""End runs, prove that nothing is left, and remove past runs.

down       end a run on every host
sweep      find, and end, what earlier runs left
prune      remove past runs and unused code
leftovers  what was on a host, and what is left, in words
"""
