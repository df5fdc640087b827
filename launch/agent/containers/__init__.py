"""The containers of tasks: the commands that run them, and this host's programs that start and remove them.

command          the argv and the environment of a program in a container, as a pure function
runtimes         the runtime's program and the image on this host, or the reason why one is missing
control          containers by name: which are recorded, which exist, and their removal
task_containers  the containers of attempts until they are proven removed, and those of other programs
"""
