"""Checkpoints on this host, and their transfer between hosts.

stored       complete checkpoints in a folder
transfer     the transfer of one checkpoint over an authenticated stream
replication  copies on further hosts, by the lead and the members; and the copy for the host of a resumed chief
resume       the checkpoint that a chief starts from
"""
