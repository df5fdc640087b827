"""``launch check``: find all that would keep a run from starting or training, at once.

targets       which task has to reach which, as TensorFlow connects them
requests      what each host is asked, made of a plan
collect       ask all hosts side by side, under one deadline; only this module touches hosts
evidence      the facts of hosts that answered, the problems of the others
findings      what is wrong: its hosts, and what mends it
host_rules    rules about one host: versions, ports, GPUs, clock, disk, programs
others        rules about hosts that did not answer
connectivity  rules about the ways between hosts
exposure      rules about who else can reach the ports
unlike        rules about what should be equal on all hosts
report        all rules together, for a person and for a program
"""
