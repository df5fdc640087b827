"""Parts for recommenders, which other models need not: embedding tables, examples that count once, exact metrics.

Nothing below knows of these packages: not checkpoints, updates or variables. ``embedding``, ``shards`` and ``metrics``
of ``cluster`` are what authors write.

scoring   the values of metrics over examples
tables    embedding tables, whose rows appear as ids come; their part of a checkpoint
once      examples that count once, in shards of files
"""
