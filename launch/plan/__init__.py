"""From a spec to a plan, and from a plan to what each agent is asked.

plan            which task runs where, with which argv and environment
local_spec      the spec of a run with ``--local``: all hosts on this machine, under their own names
agent_requests  the request of each host's agent
estimate        ask the job's own runtime for its variables and where they go
outlook         the object of ``plan --json``, written a task at a time
network_model   what a step moves over the network, and how long that takes at least
text_view       ``launch plan`` for a person
"""
