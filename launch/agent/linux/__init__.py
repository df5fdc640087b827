"""What this machine is and does, from ``/proc``, sockets and the kernel; nothing here knows a run.

procfs       small files that may be gone, or another user's
processes    process groups, identities, ends without hitting a stranger
threads      the threads of a process, and where the kernel holds them
cpu_time     what a process has done, and how much it was served
daemonize    a process that outlives the one that started it
ports        who listens where
tcp_sockets  the kernel's table of TCP sockets
connections  the connections of some processes, with their queues
traffic      bytes that tasks send and receive
oom_kills    whether the kernel has just killed a process for memory
kernel_log   what the kernel logged since a run began
machine      memory, load, limits, disks
open_files   how many files this process may have open
file_lock    a lock on a file that its holders may remove
polling      waiting until a file has something to read
"""
