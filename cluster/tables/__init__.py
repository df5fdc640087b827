"""Tables of embeddings without a vocabulary, on the servers; ``cluster.embedding`` is what an author writes.

row_keys      ids of all tables as well-spread numbers; the server of each; the keys of a step, each once
initializers  the first value of a row
store         the rows that one server holds
candidates    ids that have no row there yet
row_places    places of rows there: found by keys, taken, expired and free again
stores        the rows that all servers hold; lookups in a graph
lookahead     lookups of a later step under the present one
frozen        tables that answer and never change, from a checkpoint
row_optimizers the optimizer's update, of those rows alone that a step has a gradient for
table_refusals  uses of tables, and settings, for which there is no right step
"""
