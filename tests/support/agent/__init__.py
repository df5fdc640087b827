"""Agents in tests: what they are asked for, what they find, and how they run.

agents      real agents on this machine, a host for each name that means it
bench       the tasks of one host, and a clock that the test turns
histories   histories of a run, replayed into a supervisor
http_receiver  an HTTP server on loopback that keeps the events that it gets
requested   requests to agents
saved       checkpoints as TensorFlow writes them
"""
