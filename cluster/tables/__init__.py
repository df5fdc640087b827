"""Tables of embeddings without a vocabulary, on the servers; ``cluster.embedding`` is what an author writes.

keys           ids of all tables as well-spread numbers; the server of each
distinct       the keys of a step's ids, each once; gradients of their rows
first_values   the first value of a row
store          the rows that one server holds
candidates     ids that have no row there yet
index          from keys to the places of rows there
places         of rows there, taken and free
expiry         which rows no step has used for too long
stores         the rows that all servers hold; lookups in a graph
lookahead      lookups of a later step under the present one
frozen         tables that answer and never change, from a checkpoint
row_optimizers the optimizer's update, of those rows alone that a step has a gradient for
refusals       uses of tables, and settings, for which there is no right step
"""
