"""Select tasks of a hosts file, and write a hosts file from the host list of another program.

selection       the tasks that ``--include`` and ``--exclude`` select
import_formats  host lists of MPI, DeepSpeed and Horovod
schedulers      the hosts of a batch job of Slurm, PBS, Grid Engine or LSF
writer          a hosts file from such a list
"""
