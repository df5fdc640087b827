"""The launcher: what ``launch VERB FILE`` runs on the operator's machine.

Rooms, floor by floor; each imports only from lower ones. `tests/test_architecture.py` holds that.

agent         the program that the launcher sends to every host, and runs there
status        the objects of ``status --json``, shared with the agent
hosts         one program on one host: its channel, its request, its answers
view          the view of a run in a terminal
timeline      the newest steps of all tasks on one clock, and the tasks that wait for others
openssh       hosts over SSH, by the program ``ssh``
remote        hosts over SSH, by Fabric
hostfile      select from a hosts file, import one, write one
environments  ``launch setup``: the Python environments of hosts
history       the runs of a name that the hosts know, and the newest of them
page          a run as one HTML file
plan          from a spec to a plan, and to the requests of all agents
logs          ``launch logs``
monitoring    ``launch metrics``, ``launch view``
slurm         hosts by ``srun``, inside an allocation
tfjob         TFJob manifests of Kubernetes: to a hosts file, and back
teardown      ``launch down``, ``launch sweep``, ``launch prune``, and the proof that nothing is left
check         ``launch check``
run           ``launch up``: start a run, follow it, resume it, fail over
diagnosis     ``launch diagnose``
verbs         the command line, one module for each verb

In no room:

cli        the group of all verbs; turns errors into exit codes
errors     the launcher's errors, and their exit codes
output     stdout and stderr where they are full, closed or not read
target     the hosts file that a verb is about, narrowed by the verb's options
calls      calls to several hosts at a time, and the deadline of a verb
fleet      all hosts of a run, to which requests go in parallel
transports the transport to each host: direct, SSH or Slurm
signals    Ctrl-C, SIGTERM and Ctrl-Z, as the launcher sees them
"""
