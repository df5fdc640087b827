"""The product's launcher in the simulated world, from seed 2,000,000 on.

``launch up``, ``up -d``, ``up --resume``, ``down`` and ``status --watch`` run unchanged, and so do the verbs that they
run on hosts. In the place of SSH there is a connection of the simulated network for each program.

baton      strands, the threads of programs: one runs at a time, and only while the world lets it
programs   a process with threads, signals, files and an end
threads    pools, events and results
streams    connections and pipes with methods that block
hosts      a host as a launcher reaches it
code       the launcher's code on such a host
sessions   what runs on a host for a launcher: the product's verbs
machines   a host that is launched: its sshd, its agent as verbs see it, its locks
names      the names of the product that are replaced
replaced   what is in their place
operators  the launchers of a history
drafts     the file, and the plans of the runs that begin from it
faults     what happens to launchers, by the seed
resumes    another run that goes on from the checkpoints of the one before
successions  another run that a launcher begins by itself on other hosts
promises   what must hold of launchers
"""
