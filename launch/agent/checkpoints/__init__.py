"""Checkpoints on this host, and on their way between hosts.

local        checkpoints that are there as a whole
transfer     one on its way, over a proven stream
replication  copies on further hosts, directed by the lead
fetcher      a member's copies, fetched from the lead
resume       the checkpoint that a chief starts from
migration    one brought to the host of a resumed chief
"""
