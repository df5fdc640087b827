"""End runs, and prove that nothing is left.

down       end a run on every host
whole_run  refuse a selection that leaves out a part of the run
sweep      find, and end, what earlier runs left
leftovers  what was on a host, and what is left, in words
"""
