"""Examples that count exactly once: workers get shards of files, and checkpoints have the progress of each shard.

shard_files   shards: whole files or ranges of lines; their records, shuffled and in batches
source        the batches of one worker, made of the shards that it gets
shard_places  the progress and the worker of each shard, on the servers, which hand out the next shard
own_places    the same in asynchronous training, where each worker advances the progress of its own shards
once_steps    steps that advance the progress, and the rules for a restart
data_once     the extension of a model's graph
"""
