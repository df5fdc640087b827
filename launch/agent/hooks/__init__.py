"""Events of a run, from the lead's agent to the receivers of the key ``on``.

A receiver never delays the run: each try is a process of its own, with a time limit, and the lead only looks at it.

receivers  the receivers that the hosts file names, and one try at one of them: a process, from its start to its end
post       the program that posts an event to a URL
outbox     the deliveries under way, another try after a pause, and their file, for another agent of the lead
hooks      the events that follow from a run's statuses, each once, and their delivery
"""
