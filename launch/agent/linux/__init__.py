"""The state and the processes of this machine, from ``/proc``, sockets and the kernel; no module here knows a run.

procfs      small files that may be missing or unreadable; the threads and the work of a process; this machine's
            memory, load, limits, mounts, and a clock that includes suspension
processes   process groups and identities, signalled without any risk for other processes
program     a program that reads a text, and must end in time
daemonize   a process that outlives its parent
sockets     the TCP sockets of this host: free ports, the listener on a port, and the connections of some processes
traffic     the bytes that tasks send and receive
kernel_log  the kernel's messages since a run began, and processes that the kernel killed for memory a moment ago
open_files  the limit of this process's open files, and a wait for one file
file_lock   a lock on a file, which its holders may remove
removal     the removal of a folder, even if a task has taken away this user's access to it
"""
