"""Formats that the launcher, the agents and the tasks share: files, addresses and settings. No TensorFlow.

A task reports in files of its own folder, and its agent reads them:

outcome           the progress of a task, and its result
loss_points       the curve of the loss, as the chief reports it
progress_lines    step, loss and rate of a program under ``command:``, read from its lines
failure_kinds     the kind of a failure, by the class of its error
heartbeat         the regular report that a task is alive
flight_recorder   the writer of the times of a task's newest steps; it is always on
flight_records    the reader of these times, also after a SIGKILL of the task
save_request      a request to the chief for a checkpoint
standby           a task's next process, which prepares before it takes over
checkpoint_files  the files of checkpoints in a folder

The modules above use:

shared_files      safe access to files in folders where other programs write, too
typed_json        dataclasses as JSON values, and JSON values as dataclasses
settings          the sections of a hosts file that hosts receive
addresses         host, port, and the addresses that the internet can reach
quantity          a number with its noun
env_values        the values of ``env:``, with variables such as ``$HOME``
command_template  the placeholders in the words of ``command:``
verifiable        the settings that ``launch verify`` can compare
"""
