"""Agreements of launcher, agent and task process: files, addresses and words. No TensorFlow.

A task reports in files of its own folder, which its agent reads:

outcome           the progress of a task, and its end
failures          the kind of a failure, by the class of its error
heartbeat         the sign of life of a task
flight_recorder   record the newest steps of a task, always
flight_records    read them, also after a SIGKILL of the task
save_request      ask the chief for a checkpoint now
standby           a process that starts before its cluster does
checkpoint_files  the files of checkpoints in a folder

Under them:

record_file       a small JSON file of another program, read as a dataclass
regular_file      open files in folders where other programs write too
atomic_file       replace a small file, also on a full disk
stdout            print into a task's log, also on a full disk
limits            the limits of a task's memory, processors and files
images            files and names of containers' images
addresses         host, port, and whether the internet can reach them
quantity          a number with its noun
command_template  the words of ``command:``
verifiable        the settings that ``launch verify`` can compare
"""
