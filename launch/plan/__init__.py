"""Make a plan from a spec, and the request to each agent from a plan; show a plan.

plan            the host, the argv and the environment of each task
local_spec      the spec of a run with ``--local``: all hosts on this machine, under their own names
agent_requests  the request to each host's agent
estimate        the job's variables and their placement, from the job's own runtime
rank_variables  RANK, WORLD_SIZE and similar variables, in the environment of every task
outlook         the object of ``plan --json``, written one task at a time
split_folders   flags of a command whose folder is a different one on each host
network_model   the traffic of a step over the network, and its least duration
text_view       the text that ``launch plan`` prints
"""
