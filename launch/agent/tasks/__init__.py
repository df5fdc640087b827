"""The task processes of this host.

host_tasks    started, watched and ended here and nowhere else
task_env      the environment variables of a task's process
work_folder   the folder that a task works in
shipped       the launcher's own code, kept while a run needs it
descendants   the processes of one attempt, in whatever session
exit_causes   why a task's process ended
hopeless      failures that no further attempt mends
log_errors    the error that ended a program, out of its log
log_reader    the lines of a task, attempt after attempt
log_index     when the lines of a log were written
usage         what tasks use of their host
health        which tasks may be frozen
stacks        what a process is doing
python_probe  what the tasks' Python is and brings
"""
