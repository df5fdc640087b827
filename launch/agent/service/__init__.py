"""The long-lived agent process.

chief_command   the chief's command with another module; with it, the graph of a job is built before its tasks start
beginning       the start of an agent by the launcher, and after a boot
export          the SavedModel of a run's checkpoint
daemon          from the request to the last file removed
preparation     records, ports, programs, GPUs, limits and folders before a run
located         a request with this host's own paths in it
keeper          the agent's parent, which watches its pulse, ends what it left, and starts it again
agent           the common part of lead and member: one loop
lead            supervises the run, and owns its host's tasks
recovery        the run's status from before a restart of the lead
member          owns its host's tasks, on the lead's orders
member_links    the lead's links to the members
"""
