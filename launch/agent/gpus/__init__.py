"""The GPUs of this host, their use and their holders.

nvidia_smi  questions to the driver, and the fields of its answers
assignment  the GPUs that each task gets, held by its run, so that no other gets them
inventory   the GPUs, their health, the processes that hold memory of them, and the runs that booked them
watching    the use of GPUs and of their memory while tasks run, and GPUs that fail meanwhile
"""
