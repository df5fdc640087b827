"""The GPUs of this host, their use and their holders.

assignment  the GPUs that each task gets, held by its run, so that no other gets them
nvidia_smi  questions to the driver; the GPUs, their health, their users, and the runs that booked them
watching    the use of GPUs and of their memory while tasks run, and GPUs that fail meanwhile
"""
