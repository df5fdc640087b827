"""Select from a hosts file, import one, write one.

selection       the tasks that ``--include`` and ``--exclude`` select
import_formats  host lists of MPI, DeepSpeed and Horovod
schedulers      the hosts of a batch job of Slurm, PBS, Grid Engine or LSF
writer          write a hosts file from such a list
"""
