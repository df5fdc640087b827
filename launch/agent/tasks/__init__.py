"""The task processes of this host.

host_tasks        the only code that starts, watches and ends task processes
attempt           one attempt of a task, its processes in any session, and the signals to them
standbys          processes that wait for their task's next attempt
spawning          the start of an attempt's process, with its limits and in its container
task_reports      progress, signs of life, tasks that may be frozen, and use of network and GPUs, as events
task_env          the environment variables of a task's process
work_folder       the folder that a task works in; the launcher's own code, kept while a run needs it
task_log          the times at which the lines of a log were written, and the part of a long log that is gone
stacks            the stacks of a process's threads
"""
