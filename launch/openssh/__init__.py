"""Hosts reached by the program ``ssh``, which itself handles security keys, certificates, tickets and second factors.

    ssh_program   one process ``ssh``: its command, its environment, and commands that a person can copy
    refusals      the reason why ``ssh`` reached no host, from its text on stderr
    openssh_host  one host: one login, and the programs that share it

Each host has one login: a ControlMaster that the launcher opens. If the user has already opened a ControlMaster to the
host, for example with a second factor, programs use that one. No ``ssh`` asks a question: ``ssh`` has no terminal here,
and runs in BatchMode.
"""
