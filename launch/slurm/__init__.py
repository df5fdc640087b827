"""Hosts reached by ``srun``, inside a Slurm allocation whose nodes refuse SSH from each other.

    srun        the Slurm job of this process; one ``srun``: its command, environment, error messages, and end
    slurm_host  one host: each program on the host, and each connection to one of its ports, is a step of the job

Slurm ends every process of a step, even agents, when the step's program ends. So the program that the launcher starts
on a host waits for all its descendants (``srun.HOLD``). A step therefore lasts as long as its agent. The step's
``srun`` lasts as long, in a separate session, so the launcher may end earlier.
"""
