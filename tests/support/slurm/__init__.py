"""Slurm on fake hosts, from Debian's packages: a real slurmctld, and a slurmd for each host. And a stand-in for srun.

cluster   the daemons, and batch jobs
fixture   ``slurm_here`` for fixtures, which skip where Slurm is not installed
srun      programs in the place of ``srun`` on this machine
stand_in  one of them, which runs what it is given
"""
