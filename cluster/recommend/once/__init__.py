"""Examples that count exactly once: shards of files, handed out to workers, with their places in the checkpoint.

shard_files   shards: whole files or ranges of lines; their records, shuffled and in batches
source        the batches of one worker, out of the shards that it gets
shard_places  how far each shard has been trained, on the servers; who has it; hands out the next
own_places    the same in asynchronous training, where each worker moves its own in its turn
once_steps    steps that move the places, and the rules for a restart
data_once     the extension of a model's graph
"""
