"""Agreements of launcher, agent and task process: files, addresses and words. No TensorFlow.

A task reports in files of its own folder, which its agent reads:

outcome           the progress of a task, and its end
loss_points       the curve of the loss, as the chief reports it
progress_lines    step, loss and rate of a program under ``command:``, read from its lines
failure_kinds     the kind of a failure, by the class of its error
heartbeat         the sign of life of a task
flight_recorder   the writer of a task's newest steps, which always records
flight_records    the reader of these steps, also after a SIGKILL of the task
save_request      a request to the chief for a checkpoint
standby           a process that starts before its cluster does
checkpoint_files  the files of checkpoints in a folder

The modules above use:

shared_files      files of folders where other programs write too: opened, read as records, replaced
typed_json        dataclasses as JSON values, and JSON values as dataclasses
settings          the sections of a hosts file that hosts receive
addresses         host, port, and the addresses that the internet can reach
quantity          a number with its noun
env_values        the values of ``env:``, with names of variables
command_template  the words of ``command:``
verifiable        the settings that ``launch verify`` can compare
"""
