"""Names, ports and ways between hosts, and who may use them.

resolver  the addresses of the cluster's names on this host, and tasks that the internet can reach
doors     ports opened for a moment, for other hosts to knock on; dials those, and classifies the failures
firewall  the guard: an nftables table of the run's own
"""
