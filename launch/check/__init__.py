"""``launch check``: find all that would keep a run from starting or training, at once.

targets       which task has to reach which, as TensorFlow connects them
requests      what each host is asked, made of a plan
collect       ask all hosts side by side, under one deadline; only this module touches hosts
findings      what is wrong: its hosts, and what mends it; and the evidence for it
host_rules    rules about one host: versions, clock, disks, ports, GPUs, programs
fleet_rules   rules about several hosts: silent ones, what differs, who else can reach the ports
connectivity  rules about the ways between hosts
report        all rules together, for a person and for a program
"""
