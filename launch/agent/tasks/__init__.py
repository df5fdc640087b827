"""The task processes of this host.

host_tasks    the only code that starts, watches and ends task processes
task_env      the environment variables of a task's process
work_folder   the folder that a task works in
shipped       the launcher's own code, kept while a run needs it
descendants   the processes of one attempt, in any session
exit_causes   the kind and the cause of a process's end
hopeless      failures that no further attempt mends
log_errors    the error that ended a program, read from its log
log_reader    the lines of a task, attempt after attempt
log_index     the times at which the lines of a log were written
usage         the tasks' use of network and GPUs
health        the tasks that may be frozen
stacks        the stacks of a process's threads
python_probe  the version and the packages of the tasks' Python
"""
