"""Hosts reached by the program ``ssh``, which itself handles security keys, certificates, tickets and second factors.

    ssh_program   one ``ssh``: its command, its environment, and commands that a person can copy
    refusals      the reason why ``ssh`` reached no host, from its text on stderr
    openssh_host  one host: one login, and the programs that share it

Each host has one login, a ControlMaster of the launcher's own. Where the user has already opened a ControlMaster to the
host, for example with a second factor, that ControlMaster carries the programs. No ``ssh`` asks a question: ``ssh`` has
no terminal here, and runs in BatchMode.
"""
