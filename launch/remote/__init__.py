"""Hosts reached over SSH. The only package that knows Fabric and Paramiko.

    ssh_host             one host: a connection, and the programs that run over it
    access               what all connections share: configuration, known hosts, keys
    gateways             hosts that others are reached through, each opened once
    openssh              read an OpenSSH configuration, with what it includes; the same connection as OpenSSH's commands
    known_hosts          the keys of hosts, and the authorities that sign them; whether such a certificate is good
    private_keys         private keys, ssh-agent, passphrases
    login                the login itself: with a ticket, by SSH's own protocol for it, then with each key
    kerberos             tickets of Kerberos, where the configuration asks for them
    connection_failures  why a host could not be reached, and how often and how long an attempt is made again

Fabric brings ssh_config, users and gateways; four of its habits are changed here. It
accepts every host key, even a changed one: we reject what is not in the known hosts. It
has no bound on several waits: we set connect, banner, auth and channel timeouts and a
keepalive. It opens a gateway again for every host behind it: we open it once. It runs
commands and leaves them running when the caller goes: we only ever start our agent, which
looks after the processes itself.
"""

import logging
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what Paramiko's own imports say of Python 3.7 is no news for an operator
    import fabric  # noqa: F401 (here, before any module of this package imports it)

# What Paramiko logs of a connection that fails, we say ourselves, once, with the host's name.
logging.getLogger("paramiko").addHandler(logging.NullHandler())
