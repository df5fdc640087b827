"""Hosts reached by the program ``ssh``: security keys, certificates, tickets and second factors are its matter.

    ssh_program   one ``ssh``: its command, environment, and the commands of it for a person to copy
    refusals      the reason why ``ssh`` reached no host, from its text on stderr
    openssh_host  one host: one login, and the programs that share it

Each host has one login, a ControlMaster of the launcher's own. Where the user has opened one before, as after a second
factor, that one carries the programs. No ``ssh`` asks anything: it has no terminal, and BatchMode.
"""
