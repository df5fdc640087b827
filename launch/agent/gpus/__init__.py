"""The GPUs of this host, their use and their holders.

nvidia_smi   questions to the driver, and the fields of its answers
assignment   the GPUs that each task gets
health       memory errors and reduced clocks
failures     GPUs that fail while tasks use them
booking      GPUs held by a run, so that no other gets them
utilisation  the share of time in which the GPUs compute, and their memory in use
state        the GPUs, the processes that hold memory of them, and the runs that booked them
"""
