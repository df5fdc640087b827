"""The state and the processes of this machine, from ``/proc``, sockets and the kernel; nothing here knows a run.

procfs       small files that may be gone, or another user's; the threads of a process
processes    process groups and identities, ended without hitting a stranger
program      a program that gets a text, and has to end in time
cpu_time     the work that a process has done, and the part of its time that it was served
daemonize    a process that outlives the one that started it
ports        the listening ports, and their processes
tcp_sockets  the kernel's table of TCP sockets
connections  the connections of some processes, with their queues
traffic      bytes that tasks send and receive
oom_kills    processes that the kernel has just killed because memory ran out
kernel_log   the kernel's messages since a run began
clocks       a clock that goes on while the machine is suspended
machine      memory, load, limits
open_files   the limit of this process's open files, and waiting for one
file_holes   a part of a file, whose blocks the disk gets back
file_lock    a lock on a file that its holders may remove
"""
