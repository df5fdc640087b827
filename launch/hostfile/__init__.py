"""Select from a hosts file, import one, write one, write a first job, read its bounds for past runs.

selection       the tasks that ``--include`` and ``--exclude`` mean
import_formats  host lists of MPI, DeepSpeed, Horovod and Slurm
writer          write a hosts file from such a list
keep            the key `keep`, as hosts get it and in words
"""
