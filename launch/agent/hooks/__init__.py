"""Events of a run, from the lead's agent to the receivers of the key ``on``.

A receiver never delays the run: each try is a separate process with a time limit, which the lead only polls.

receivers  the receivers of the hosts file, and one try: a process, from its start to its end
post       the program that posts an event to a URL
outbox     the deliveries in progress, retries after a pause, and their file for the next agent of the lead
hooks      the events of a run, derived from its statuses, each once, and their delivery
"""
