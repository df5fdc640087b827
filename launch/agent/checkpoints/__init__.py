"""Checkpoints on this host, and on their way between hosts.

stored       checkpoints that are there as a whole
transfer     one on its way, over a proven stream
replication  copies on further hosts: the lead's part, and a member's
resume       the checkpoint that a chief starts from
migration    one brought to the host of a resumed chief
"""
