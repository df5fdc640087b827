"""The GPUs of this host: which run holds each, how busy they are, and which have failed.

assignment  the GPUs of each task, reserved so that no other run takes them
nvidia_smi  queries to the driver: GPUs, their health, and the memory that processes hold
watching    the load of the GPUs and of their memory while tasks run, and GPUs that fail
"""
