"""What the lead decides, as functions of events and time: no process, socket, file or clock is touched here.

``supervise`` is where to begin: the phases of a run, the states of a task, and what every event means. Each rule that
has a state of its own is a module that it calls.
"""
