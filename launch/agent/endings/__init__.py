"""The reason why a task's process ended, found in its outcome, its log and the kernel's counts.

exits        the message to the lead about an ended task
exit_causes  the kind and the cause of a process's end, and failures that no further attempt can repair
log_errors   the error that ended a program, read from its log
"""
