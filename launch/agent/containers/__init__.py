"""The containers of tasks: their commands, and the programs of this host that run and end containers.

command          the argv and the environment of a program in a container, as a pure function
runtimes         the runtime's program and the image on this host, or the reason why one is missing
control          containers by name: their record, their existence, and their removal
task_containers  the containers of attempts until their proven removal, and of other programs
"""
