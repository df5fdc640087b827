"""Names, ports and ways between hosts, and who may use them.

resolver          what the cluster's names mean here
target            where a task, or an agent, is dialled
listeners         ports opened for a moment, for others to knock on
probes            knocking on them, and what a failure means
public_addresses  tasks whose address the internet can reach
firewall          the guard: an nftables table of the run's own
"""
