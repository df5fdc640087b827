"""Hosts that are reached over SSH and need neither sshd nor root: asyncssh's servers on loopback, as this very user.

hosts         hosts by name, each a server, and the operator's files
keys          pairs of keys as ssh-keygen writes them
security_key  an agent with a key of a security key, made of software
server        the servers' own process
"""

HOST = "127.0.0.1"  # where all of them are
