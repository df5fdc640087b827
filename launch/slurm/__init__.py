"""Hosts reached by ``srun``, inside an allocation of Slurm, where nodes refuse SSH from each other.

    srun        the job around this process; one ``srun``: its command, environment, complaints, and its end
    slurm_host  one host: each program on it is a step of the job, each connection to a port of it too

Slurm ends every process of a step when the step's program ends, agents too. So the program that the launcher starts
on a host waits for all that it has started (``srun.HOLD``): a step lasts as long as its agent. Its ``srun`` lasts as
long, in a session of its own, so the launcher may go.
"""
