"""What stays when runs come and go, and what grows while one lasts.

    python -m tests.benchmarks.soak --runs 500
    python -m tests.benchmarks.soak --minutes 90        (as root)

many_runs  many runs on this machine, one after the other
long_run   one run on fake hosts, with a fault every minute
drawn      the faults of a long run, out of a seed
sample     one look at a long run: files, processes, memory
files      the files below a folder, and their sizes
growth     rows of samples, and whatever has grown between them
"""
