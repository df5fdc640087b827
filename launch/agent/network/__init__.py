"""Names, ports and ways between hosts, and who may use them.

resolver          the addresses of the cluster's names on this host
target            the address at which a task, or an agent, is dialled
listeners         ports opened for a moment, for others to knock on
probes            dials those ports, and classifies the failures
public_addresses  tasks whose address the internet can reach
firewall          the guard: an nftables table of the run's own
"""
