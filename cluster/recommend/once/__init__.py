"""Training on each example exactly once in an epoch: workers get shards of files; checkpoints store their progress.

shard_files   shards: whole files or ranges of lines; their records, shuffled and in batches
source        the batches of one worker, read from the shards that it gets
shard_places  the progress and the worker of each shard, on the servers, which assign free shards to workers
own_places    the same in asynchronous training, where each worker advances the progress of its own shards
once_steps    steps that advance the progress, and the rules for a restart
data_once     the extension of a model's graph
"""
