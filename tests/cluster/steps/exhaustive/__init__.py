"""Synchronous steps under every order of events and every death, for a few workers, servers and steps.

servers    the servers' state, and the operations that a session runs there, each as one event
sessions   the workers' own code, which runs unchanged; its sessions run one event at a time
explorer   every state that any order of these events, deaths and returns can reach
"""
