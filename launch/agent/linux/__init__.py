"""Functions that read this machine's state and control its processes. They know nothing about a run.

procfs      the contents of ``/proc``: small files, the threads and the work of a process, this machine's memory, load,
            limits and mounts, and a clock that does not stop in sleep
processes   process groups, and signals that never reach an unrelated process
program     a child program that gets a text as its input, and has a time limit
daemonize   a process that outlives its parent
sockets     the TCP sockets of this host: free ports, the listener on a port, and the connections of given processes
traffic     the bytes that tasks send and receive
kernel_log  the kernel's messages about trouble, and the processes that it killed when memory ran out
open_files  the limit of this process's open files, and a wait until a file has data
file_lock   a lock on a file; a holder may remove the file
removal     the removal of a folder, even if a task has removed this user's permissions
"""
