"""Extensions of a model for recommenders: embedding tables, and examples that count once.

No package of the training knows these packages. ``cluster.embedding`` and ``cluster.shards``, which jobs call, add them
to a model's graph (``cluster.steps.extension``).

tables    embedding tables, whose rows appear as ids come; their part of a checkpoint
once      examples that count once, in shards of files
"""
