"""Containers of tasks: the command that runs one, and the programs of this host that run and end them.

command          the argv and the environment of a program in a container, as a pure function
runtimes         the program and the image on this host, or what is missing
control          containers by their names: their record, whether they exist, and their removal
task_containers  the containers of attempts until they are proven gone, and those of programs beside the tasks
"""
