"""The state and the processes of this machine, from ``/proc``, sockets and the kernel; nothing here knows a run.

procfs      small files that may be gone, or another user's; the threads and the work of a process; this machine's
            memory, load, limits, and a clock that goes on while the machine is suspended
processes   process groups and identities, ended without hitting a stranger
program     a program that gets a text, and has to end in time
daemonize   a process that outlives the one that started it
sockets     the TCP sockets of this host: free ports, who listens on one, and the connections of some processes
traffic     bytes that tasks send and receive
kernel_log  the kernel's messages since a run began, and processes that it has just killed because memory ran out
open_files  the limit of this process's open files, and waiting for one
file_lock   a lock on a file that its holders may remove
"""
