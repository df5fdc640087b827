"""A simulated world for the lead and the members of a run: one seed is one history.

The product's own coroutines run unchanged. In the place of time, network, processes and disks are

time       ``loops``: an event loop for each agent, on virtual time, by its host's own clock
network    ``network``: delays, one-way cuts, resets, half-open connections
processes  ``processes``: the tasks of each host; ``training``: how they train together
disks      ``replaced``: an agent's files in memory; the list of all names that are replaced

loops      the world's order of events, and the loop of each agent
machines   hosts that boot, sleep and lose power; agents that die, and their keepers
faults     a plan of faults and operators by seed
promises   what must hold after every event
orders     what must hold as an agent obeys
outcomes   what must hold once a history is over
world      one history, from the launcher's go to the end
mutants    agents with a mistake in them, which histories must find
verdict    which promise a history breaks, or what else goes wrong
many       many histories in several processes
columns    a history in print
shorten    from a failure to a test
met        phases in which faults have begun, and the fault before each
lines      lines of the agents that histories have run
"""
