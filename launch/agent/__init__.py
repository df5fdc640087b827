"""The part of the launcher that runs on a host: one agent per host and run, with only Python's standard library.

The agent owns its host's tasks: it starts them, directs their output to logs, detects when they end, and alone signals
them. The agent on the chief's host is the *lead*, which also supervises the whole run. The other agents are *members*;
each connects to the lead. The packages and modules, lowest first, except for the last three:

  linux         processes, sockets, files and the kernel of this machine
  text          removes control sequences and secrets from the output of programs
  wire          the launcher's request to an agent
  gpus          the GPUs of this host, and which run holds each
  state         the files, records and locks of runs
  protocol      messages and connections between agents
  network       names, ports and connections between hosts
  endings       the reasons why tasks' processes ended
  containers    containers of tasks: their commands, their runtimes, their removal
  limits        limits of tasks, and their enforcement
  leftovers     processes, locks and files that a run, or an earlier run of its name, has left here; their removal
  supervision   the lead's decisions, as pure functions of events and time
  tasks         the task processes of this host
  checkpoints   checkpoints on this host, and their transfer between hosts
  environments  Python environments, for ``launch setup``
  retention     past runs and unused code, and their removal
  hooks         events of the run, and their receivers
  after         the commands of the key ``after``, which run once the run has ended on this host
  notice        the notice that this host's machine will shut down
  facts         this host's Python, GPUs and disks, for ``launch check`` and ``launch diagnose``
  service       the long-lived agent process
  verbs         the verbs of ``python -m launch.agent``, each a short-lived process
  diagnosis     this host's part of ``launch diagnose``
  __main__      the entry point of the verbs
  errors        the errors of the agent, with one base class
  bootstrap     the first program on a host: it receives the shipped code, and runs verbs
"""
