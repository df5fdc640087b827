"""The GPUs of this host, their use and their holders.

nvidia_smi   questions to the driver, and the fields of its answers
assignment   the GPUs of this host, and those that each task gets
booking      GPUs held by a run, so that no other gets them
memory       the processes that hold memory of the GPUs
utilisation  the share of time in which the GPUs compute, and their memory in use
state        the state of the GPUs, from the driver and the runs
"""
