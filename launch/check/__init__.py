"""``launch check``: find every obstacle to starting or training a run, at once.

ways         the connections that tasks need, as TensorFlow makes them; the rule about failed connections
interview    ask all hosts for facts under one deadline. Only this module contacts hosts
findings     the problems found, with their hosts and next steps; the evidence for them
host_rules   rules about one host: versions, clock, disks, ports, GPUs, programs
fleet_rules  rules about several hosts: silent hosts, differences, the reachability of ports from elsewhere
report       the results of all rules, as lines of text and as JSON
"""
