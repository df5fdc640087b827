"""Checkpoints on this host, and their transfer between hosts.

stored       complete checkpoints in a folder
transfer     the transfer of one checkpoint over an authenticated stream
replication  the copies of new checkpoints to further hosts; and the copy to the host of a resumed run's chief
resume       the checkpoint that a chief starts from
"""
