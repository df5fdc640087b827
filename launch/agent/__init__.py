"""The part of the launcher that runs on a host: one agent per host and run, with only Python's standard library.

The agent owns its host's tasks: it starts the tasks, directs their output to logs, detects their ends, and alone
signals them. The agent on the chief's host is the *lead*, which also supervises the whole run. The other agents are
*members*; each member dials the lead.  The rooms and modules, lowest first, except for the last three:

  linux         processes, sockets, files and the kernel of this machine
  text          the output of programs without control sequences and secrets
  wire          the launcher's request to an agent
  gpus          the GPUs of this host, and their holders
  state         files, records and locks of runs
  protocol      messages and connections between agents
  network       names, ports and connections between hosts
  endings       the reason why a task's process ended
  containers    containers of tasks: their commands, their runtimes, their removal
  limits        limits of tasks, and their enforcement
  leftovers     the remains of a run, its earlier agents and earlier runs of its name on this host, and their end
  supervision   the lead's decisions, as pure functions
  tasks         the task processes of this host
  checkpoints   checkpoints on this host, and their transfer between hosts
  environments  Python environments, for ``launch setup``
  retention     past runs and unused code, and their removal
  hooks         events of the run, and their receivers
  after         the commands of the key ``after``, once this host's part of the run is over
  notice        the notice that this host's machine will shut down
  facts         the facts of this host, for ``launch check`` and ``launch diagnose``
  service       the long-lived agent process
  verbs         the short-lived verbs
  diagnosis     this host's part of ``launch diagnose``
  __main__      the entry of the verbs
  errors        the errors of the agent, with one root
  bootstrap     first contact: receives the shipped code, and runs verbs
"""
