"""End runs, prove that nothing is left, and remove past runs.

down            end a run on every host
leftovers_text  what was on a host, and what is left, in words
"""
