"""The long-lived agent process.

chief_command   the chief's command with another module: the graph of a job before its tasks start, and a SavedModel
beginning       the start of an agent by the launcher, and after a boot
daemon          from the request to the last file removed
preparation     records, ports, programs, GPUs, limits and folders before a run
located         a request with this host's own paths in it
keeper          the agent's parent, which watches its pulse, ends what it left, and starts it again
agent           the common part of lead and member: one loop
lead            supervises the run, and owns its host's tasks
publication     the run's status in files, for receivers, and for those that watch
recovery        the run's status from before a restart of the lead
member          owns its host's tasks, on the lead's orders
member_links    the lead's links to the members
"""
