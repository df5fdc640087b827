"""``launch check``: find all that would keep a run from starting or training, at once.

ways         which task has to reach which, as TensorFlow connects them; rules about ways that are closed
interview    what each host is asked, made of a plan; ask all under one deadline: only this module touches hosts
findings     what is wrong: its hosts, and what mends it; and the evidence for it
host_rules   rules about one host: versions, clock, disks, ports, GPUs, programs
fleet_rules  rules about several hosts: silent ones, what differs, who else can reach the ports
report       all rules together, for a person and for a program
"""
