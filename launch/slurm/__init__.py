"""Hosts reached by ``srun``, inside an allocation of Slurm, where nodes refuse SSH from each other.

    allocation  the Slurm job around this process, and its nodes
    step        the command line and the environment of one ``srun``
    host        one host: each program on it is a step of the job
    steps       the processes ``srun`` of this launcher, and their end
    relay       a connection to a port of the host, through a step
    refusals    why ``srun`` started no step

Slurm ends every process of a step when the step's program ends, agents too. So the program that the launcher starts
on a host waits for all that it has started (``step.HOLD``): a step lasts as long as its agent. Its ``srun`` lasts as
long, in a session of its own, so the launcher may go.
"""
