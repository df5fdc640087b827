"""The task processes of this host.

host_tasks        the only code that starts, watches and ends task processes
attempt           one attempt of a task, its processes in any session, and the signals to them
standbys          processes that wait for their task's next attempt
spawning          the start of an attempt's process, with limits and in a container
task_reports      the events about progress, signs of life, tasks that may be frozen, and use of network and GPUs
idleness          the measurement of attempts that do nothing
saved_checkpoints the checkpoints that programs under ``command:`` save, and whether their values are on this host
foreign_progress  the progress of programs under ``command:``, from their logs and files
task_env          the environment variables of a task's process
work_folder       the folder that a task works in, and the launcher's own code, which a run preserves
state_folder      the folder that the programs of one name keep from run to run
task_log          the times at which the lines of a log were written, and the freed part of a long log
stacks            the stacks of a process's threads
program_stacks    a folder of PYTHONPATH, with which a foreign Python program can write its stacks
"""
