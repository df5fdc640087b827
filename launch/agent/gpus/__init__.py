"""The GPUs of this host, their use and their holders.

assignment  the GPUs of each task, booked for its run, so that no other run takes them
nvidia_smi  queries to the driver: GPUs, their health, and the memory that processes hold
watching    the use of GPUs and of their memory while tasks run, and GPUs that fail
"""
