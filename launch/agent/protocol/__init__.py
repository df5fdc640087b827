"""How agents, and programs on their host, talk to each other.

messages      the messages, one JSON line each
links         the connection between a member and the lead
gate          the port that members dial, whatever strangers do there
sealed        lines that only the other end can have written
silence       which hosts the lead does not hear
local_server  local callers of an agent, over a Unix socket
local_client  the other end of it
"""
