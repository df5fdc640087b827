"""Synchronous steps under every order of events and every death, for a few workers, servers and steps.

servers      the servers' state, and the operations that a session runs there, each as one event
sessions     sessions that run one operation at a time
operations   what the workers' sessions run, as the product's graphs have it
lives        the workers' own code, which runs unchanged
explorer     every state that any order of these events, deaths and returns can reach
symmetry     the state in which two workers are exchanged, which need not be explored
reached      the states by number, and from which of them no end can be reached
"""
