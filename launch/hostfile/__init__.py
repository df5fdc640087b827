"""Select from a hosts file, import one, write one.

selection       the tasks that ``--include`` and ``--exclude`` select
import_formats  host lists of MPI, DeepSpeed, Horovod and Slurm
writer          write a hosts file from such a list
"""
