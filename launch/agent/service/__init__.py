"""The long-lived agent process: its start, its preparation of a host, and its life as lead or member.

chief_command   the chief's command with another module, to check a job's graph or to build a SavedModel
beginning       the start of an agent by the launcher, and its restart after a boot
daemon          the agent process, from the request to the removal of its last file
preparation     the records, ports, programs, GPUs, limits and folders of a host before a run
located         a request with this host's own paths in it
keeper          the agent's parent, which watches the agent's pulse, cleans up after it, and restarts it
keeping         the keeper's decisions: whether an agent is frozen, and what follows its end
agent           the common part of lead and member: one loop
lead            the agent that supervises the run, and owns its host's tasks
publication     the run's status in files, for receivers, and for ``watch``
recovery        the continuation of a run after a restart of its lead
member          an agent that owns its host's tasks, and obeys the lead's orders
member_links    the lead's links to the members
"""
