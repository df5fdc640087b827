"""From a spec to a plan, and from a plan to the request of each agent.

plan            the host, the argv and the environment of each task
local_spec      the spec of a run with ``--local``: all hosts on this machine, under their own names
agent_requests  the request of each host's agent
estimate        ask the job's own runtime for its variables and their placement
rank_variables  RANK, WORLD_SIZE and the like, in the environment of every task
outlook         the object of ``plan --json``, written one task at a time
split_folders   flags of a command that name a folder of their own on each host
network_model   the traffic of a step over the network, and its least duration
text_view       ``launch plan`` for a person
"""
