"""``launch check``: all that would keep a run from starting or training, found at once.

    dials       which task has to reach which, as TensorFlow connects them
    questions   what each host is asked, out of a plan
    interview   the conversations with all hosts, under one deadline
    evidence    what was heard: facts of the hosts that answered, problems of the others
    findings    what is wrong, each with its hosts and what mends it
    own         rules about one host: versions, ports, GPUs, clock, disk, programs
    others      rules about hosts that did not answer
    ways        rules about the ways between hosts
    exposure    rules about who else can reach the ports
    unlike      rules about what should be equal on all hosts
    verdict     the rules together; the report for a person and for a program

Only ``interview`` touches hosts. The rules are functions of the evidence.
"""
