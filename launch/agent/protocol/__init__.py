"""The messages and connections of agents, with each other and with programs on their host.

messages      the messages, one JSON line each
links         the connection between a member and the lead
gate          the port that members dial, whatever strangers do there
sealed        lines that only the other end can have written
silence       hosts from which the lead receives nothing
local_socket  local callers of an agent, over a Unix socket: both ends of it, and the launcher's way to it
"""
