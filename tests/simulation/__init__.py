"""A simulated world for the lead and the members of a run: one seed is one history.

The product's own coroutines run unchanged. In the place of time, network, processes and disks are

time       ``loops``: an event loop for each agent, on virtual time, by its host's own clock
network    ``network``: delays, one-way cuts, resets, half-open connections
processes  ``process_table``: what starts, ends, hangs, and is left; the product's ``HostTasks`` runs on it
disks      ``disks``, ``handles``, ``paths``: the files of tasks and agents, in memory, and what a power cut leaves

loops      the world's order of events, and the loop of each agent
runs       the run of a seed, and what its agents are asked for
lives      one life of an agent
machines   hosts that boot, sleep and lose power; agents that die
keepers    the keeper of a host, which decides with the product's code
faults     a plan of faults and operators by seed
keeper_faults  faults of keepers, and of agents that end or cannot begin
promises   what must hold after every event
orders     what must hold as an agent obeys
outcomes   what must hold once a history is over
world      one history, from the launcher's go to the end
short      the same, of which training ends soon after a fault
operators  who starts and ends the run
launcher   the product's launchers
mutants    agents with a mistake in them, which histories must find
verdict    which promise a history breaks, or what else goes wrong
many       many histories in several processes
columns    a history in print
shorten    from a failure to a test
met        phases in which faults have begun, and the fault before each
lines      lines of the agents that histories have run
names      the names of the product that are replaced
replaced   what is in their place
kernel     the edge to processes and shared files, for the host whose agent runs
process_table  parents, zombies and orphans of one host
processes  one process, and what signals do to it
programs   what a task reads and writes
disks      files in memory, and what is synced of them
handles    open files
paths      paths of such files
saved      checkpoints as files
disk_faults  changes of files that fail, and records that are damaged
damage     what becomes of a record
network    connections
training   how processes train together
"""
