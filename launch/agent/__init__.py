"""What runs on a host: one agent per host and run, on Python's standard library alone.

The agent owns its host's tasks: it starts them, writes their logs, notices when they
end, and is the only thing that signals them. The agent on the chief's host is the
*lead*: it also supervises the whole run. The others are *members*; each dials the lead.

    receive     first contact: takes the shipped code, becomes a verb of this package
    __main__    the verbs: start, attach, check, status, logs, look, down, sweep
    detach      a process that outlives the one that started it
    keeper      the agent's parent, which ends what an agent that was killed leaves
    daemon      the agent process, from preparing the host to the last file removed
    agent       one queue of events, one loop: what lead and member have in common
    lead        supervises the run, and owns its own host's tasks
    member      owns its host's tasks and takes orders from the lead
    supervise   what to do next, as a pure function of events and time
    messages    what agents tell each other
    links       the authenticated connection between a member and the lead
    tasks       the task processes of this host
    processes   process groups, identities, parent-death signals
    records     which processes are a run's, by pid and start time
    clients     local callers of an agent, over a Unix socket
    caller      the other end of it
    locks       the name of a run, held while it is up
    file_lock   a lock on a file that its holders may remove
    states      the states of a run and of a task
    inquire     status: from the agent, or from its files
    logs        lines of task logs, in the order of time; task_log, log_times: of one task
    board       TensorBoard beside a run's summaries
    down        the end of a run from outside, with the agent's help or without
    sweep       what earlier runs left, and its end
    remains     what of a run is on this host, and its end
    check       this host's part of ``launch check``: the conversation, and what is here
    doors       ports opened for a moment, behind which only our own listener answers
    target      where a task, or an agent, is dialled
    dial        knocking on other hosts' doors, and what a failure means
    names       what the cluster's names mean on this host
    versions    what the tasks' Python is and brings
    gpu_state   what the GPUs are doing
    resume      which checkpoint the chief starts from
    folder      where a run keeps its files
    agent_log   what an agent says, on a full disk too
    ports       who listens where
    gpus        which GPUs this host has, and which a task gets
    environment the Python environments of this host
    build       makes one, as a lock file says
    wheels      packages that the launcher sent for it
    pip_output  what pip prints, in words
    booking     GPUs held by a run, so that no other gets them
    nvidia_smi  what the driver is asked
    gpu_memory  whose memory is on the GPUs
    usage       what tasks use of their host; traffic: of its network, gpu_use: of its GPUs
    guard       an nftables table that lets only the cluster reach the run's ports
    masking     keeps secrets out of what is shown; redaction: also what only looks like one
    diagnose    this host's part of ``launch diagnose``, with run_files, live (processes), connections (by way of
                tcp_table), kernel_messages and machine
    exposure    tasks whose address the internet can reach
"""
