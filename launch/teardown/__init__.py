"""End runs, and prove that nothing is left.

down       end a run on every host
sweep      find, and end, what earlier runs left
leftovers  what was on a host, and what is left, in words
"""
