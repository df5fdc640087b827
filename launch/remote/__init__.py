"""Hosts reached over SSH. Only this package imports Fabric and Paramiko.

    ssh_host             one host: a connection, and the programs that run over it
    access               the resources of all connections: configuration, known hosts, keys
    proxy_command        the program that carries a connection
    gateways             hosts through which others are reached, each opened once
    ssh_options          the options of each host, as ``ssh -G`` prints them
    known_hosts          the keys of hosts, and whether authorities sign them
    private_keys         private keys, ssh-agent, passphrases
    login                the login with each key
    connection_failures  the reason why a host is out of reach, and whether a retry may help

Fabric provides ssh_config, users and gateways, but four of Fabric's habits are changed here. Fabric accepts every host
key, even a changed one; this package rejects keys that are not in the known hosts. Several of Fabric's waits have no
bound; this package sets connect, banner, auth and channel timeouts and a keepalive. Fabric opens a gateway again for
every host behind the gateway; this package opens each gateway once. Fabric leaves commands running when the caller
ends; this package only starts the agent, which looks after the processes itself.
"""

import logging
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # an operator does not need the warnings of Paramiko's imports about Python 3.7
    import fabric  # noqa: F401 (here, before any module of this package imports it)

# The launcher itself reports a failed connection, once and with the host's name, so Paramiko's log is dropped.
logging.getLogger("paramiko").addHandler(logging.NullHandler())
