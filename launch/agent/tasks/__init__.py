"""The processes of this host's tasks.

host_tasks        the only code that starts, watches and ends task processes
attempt           one attempt (start) of a task: its processes in any session, and the signals to them
standbys          processes that were started in advance for their task's first or next attempt
spawning          the start of an attempt's process, with limits and in a container
task_reports      events about progress, late heartbeats, tasks that may be frozen, and the load of network and GPUs
idleness          for how long each attempt has done no work
saved_checkpoints the checkpoints that programs under ``command:`` save, and whether this host has all of their files
foreign_progress  the progress of programs under ``command:``, from their logs and files
task_env          the environment variables of a task's process
work_folder       the working folder of a task; and the launcher's own code, which the agent protects from removal
state_folder      the folder in which programs of one name keep files from run to run
task_log          the times at which the lines of a log were written, and the limit on a log's size
stacks            the stacks of a process's threads
program_stacks    a folder for PYTHONPATH, with which a program under ``command:`` can write its stacks
"""
