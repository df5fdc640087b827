"""The names, ports and connections between hosts, and the guard of the ports.

resolver  the addresses of the cluster's names here, names without an address, and tasks that the internet can reach
doors     ports that other hosts dial for a check, these dials, and the kinds of their failures
firewall  the guard: a separate nftables table for each run
"""
