"""Training on each example exactly once in an epoch: workers get shards of files; checkpoints store their progress.

shard_files   shards: whole files or ranges of lines; their records, shuffled and in batches
source        the batches of one worker, read from the shards that it gets
shard_places  the progress and the worker of each shard, on the servers, which assign free shards to workers
place_rows    the rows in which workers note a batch, and the variables of shards
arrivals      files that arrive during training: the chief gives their shards a number on the servers
own_places    the same in asynchronous training, where each worker advances the progress of its own shards
once_steps    synchronous steps that advance the progress, and the rules for a restart
async_once    the same of asynchronous training
data_once     the extension of a model's graph
"""
