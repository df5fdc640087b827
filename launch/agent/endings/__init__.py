"""The reason why a task's process ended, from what the process left.

exits        the message to the lead about an ended task
exit_causes  the kind and the cause of a process's end, and failures that no further attempt mends
log_errors   the error that ended a program, read from its log
"""
