"""The task processes of this host.

host_tasks        the only code that starts, watches and ends task processes
attempt           one attempt of a task, and the signals to its processes
standbys          processes that wait for their task's next attempt
descendants       the processes of one attempt, in any session
reports           progress, signs of life and use of the host, as events
health            the tasks that may be frozen
task_limits       limits of attempts: their groups, and memory that the agent watches itself
container_limits  the limits that a task in a container can have
usage             the tasks' use of network and GPUs
task_containers   the containers of attempts, until they are proven gone
one_shot          a program beside the tasks, in their container
task_env          the environment variables of a task's process
work_folder       the folder that a task works in
shipped           the launcher's own code, kept while a run needs it
log_reader        the lines of a task, attempt after attempt
log_gap           the bound of a log, and the part of a long one that is gone
log_index         the times at which the lines of a log were written
stacks            the stacks of a process's threads
python_probe      the version and the packages of the tasks' Python
"""
