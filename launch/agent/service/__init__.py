"""The long-lived agent process.

daemon         from the request to the last file removed
located        a request with this host's own paths in it
guardian       the agent's parent, which ends what it left
liveness_pipe  by which the guardian knows that it is not frozen
predecessors   what earlier runs of the name left alive
takeover       making way for another agent of a run
agent          what lead and member have in common: one loop
lead           supervises the run, and owns its host's tasks
recovery       what a lead that was started again knows
member         owns its host's tasks, on the lead's orders
member_links   the members as the lead knows them
"""
