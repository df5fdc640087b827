"""The delivery of a run's events, from the agent of the chief's host to the receivers of the key ``on``.

A receiver never delays the run: each try to deliver is a separate process with a time limit. The agent only polls it.

receivers  the receivers in the hosts file, and one try to deliver an event to a receiver
post       the program that posts an event to a URL
outbox     the deliveries in progress, their retries, and the file from which a restarted agent continues them
hooks      the events of a run, each derived once from the run's statuses, and their delivery
"""
