"""The messages between agents, and their connections with each other and with programs on their host.

messages      the message types, each encoded as one JSON line
links         the connection between a member and the lead
gate          the port that members dial, with bounds against strangers
sealed        lines whose sender is proven to be the other end
silence       hosts from which the lead receives nothing, and the silence of the launcher
local_socket  the Unix socket of an agent for local callers, and the launcher's link to it
"""
