"""The names, ports and connections between hosts, and the firewall rules that protect the ports.

resolver  the addresses of the hosts' names, names without an address, and tasks that the internet can reach
doors     ports that hosts open for ``launch check``, the test connections to them, and the kinds of failures
firewall  the key ``guard``: a separate nftables table for each run
"""
