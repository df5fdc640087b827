"""The limits of tasks, and the enforcement of each limit on this host.

enforcement     the limits that this host can enforce for its tasks; the limits of a process before its program begins
task_limits     the limits of attempts: their groups, and memory that the agent itself watches
control_groups  groups of the kernel, each with a memory limit, and the remaining groups of a run
processors      the processors of each task, and of other runs; the processors and the memory of a NUMA node
"""
