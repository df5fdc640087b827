"""The limits of tasks on memory, processors and files, and how this host enforces them.

enforcement     which limits this host can enforce for its tasks, and how a process sets its limits
task_limits     the limits of each start of a task: its control group, or memory that the agent itself watches
control_groups  the kernel's control groups, each with a memory limit, and the groups that a run has left behind
processors      the processors that are reserved for each task; the processors and the memory of NUMA nodes
"""
