"""The limits of tasks, and what enforces each of them on this host.

enforcement     what this host can enforce for its tasks, or not; the limits of a process before its program begins
task_limits     limits of attempts: their groups, and memory that the agent watches itself
control_groups  groups of the kernel, each with a limit of memory, and those of a run that are left
processors      the processors of each task, and of other runs; the processors and the memory of a NUMA node
"""
