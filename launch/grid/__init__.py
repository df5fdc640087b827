"""``launch grid``: a run for each combination of values.

points   the combinations, their results, the next point and the best point; this module contacts no host
record   the file from which a grid is continued
running  the runs: each in a thread, started when hosts are free, and stopped cleanly
"""
