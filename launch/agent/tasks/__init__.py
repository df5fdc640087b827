"""The task processes of this host.

host_tasks        the only code that starts, watches and ends task processes
attempt           one attempt of a task, its processes in any session, and the signals to them
standbys          processes that wait for their task's next attempt
health            the tasks that may be frozen
task_limits       limits of attempts: their groups, and memory that the agent watches itself
container_limits  the limits that a task in a container can have
task_reports      progress, signs of life, and use of network and GPUs, as events
task_containers   the containers of attempts, until they are proven gone
one_shot          a program beside the tasks, in their container
task_env          the environment variables of a task's process
work_folder       the folder that a task works in
shipped           the launcher's own code, kept while a run needs it
task_log          the times at which the lines of a log were written, and the part of a long log that is gone
stacks            the stacks of a process's threads
"""
