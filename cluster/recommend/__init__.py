"""Extensions of a model for recommenders: embedding tables, and examples that count once.

No package of the training imports these packages. Jobs call ``cluster.embedding`` and ``cluster.shards``, which add
the extensions to a model's graph (``cluster.steps.extension``).

tables    embedding tables, which get a row for each new id; their part of a checkpoint
once      examples that count once, in shards of files
serving   keep a served model up to date by files of changes
"""
