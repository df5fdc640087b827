"""The GPUs of this host, their use and their holders.

assignment  the GPUs of each task, booked for its run, so that no other run takes them
nvidia_smi  queries to the driver; the GPUs, their health, their users, and the runs that booked the GPUs
watching    the use of GPUs and of their memory while tasks run, and GPUs that fail
"""
