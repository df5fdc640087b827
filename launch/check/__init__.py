"""``launch check``: find every obstacle to starting or training a run, at once.

ways         the connections that tasks need, as TensorFlow makes them; rules about closed ways
interview    the request to each host; ask all hosts under one deadline. Only this module touches hosts
findings     the problems found, with their hosts and next steps; the evidence for them
host_rules   rules about one host: versions, clock, disks, ports, GPUs, programs
fleet_rules  rules about several hosts: silent hosts, differences, the reachability of ports from elsewhere
report       the results of all rules, for a person and for a program
"""
