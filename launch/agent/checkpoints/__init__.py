"""Checkpoints on this host, and on their way between hosts.

stored       checkpoints that are there as a whole
transfer     one on its way, over a proven stream
replication  copies on further hosts: the lead's part, and a member's; one brought to the host of a resumed chief
resume       the checkpoint that a chief starts from
"""
