"""The limits of tasks, and what enforces each of them on this host.

terms           what this host can enforce for its tasks, and what it cannot
enforcement     the limits of one process, from before its program begins
control_groups  groups of the kernel, each with a limit of memory
processors      the processors of each task, and those that other runs have
numa            the processors and the memory of a NUMA node
memory_use      the memory of some processes, where no group counts it
"""
