"""Hosts that are reached over SSH and need neither sshd nor root: asyncssh's servers on loopback, as this very user."""

HOST = "127.0.0.1"  # where all of them are
