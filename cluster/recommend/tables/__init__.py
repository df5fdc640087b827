"""Embedding tables without a vocabulary, on the servers; jobs use them through ``cluster.embedding``.

keras_rows      a layer of Keras that looks up ids, for both runtimes
lookups         tables and lookups in a graph that is being built; refusals of lookups that cannot be trained
row_finder      the rows of ids as a model gives them: of any shape, with weights and padding
splitmix        numbers of the hash, salts of tables; keys and first values with numpy alone
row_keys        the ids of all tables, hashed to keys; the server of each key; the distinct keys of a step
initializers    the first value of a row
held_rows       rows in one server's memory: their columns, places and first values
store           the rows in one server's memory, looked up and updated
candidates      ids that have no row on a server yet
row_floors      tables whose oldest rows go many at once: above a bound of rows, or after a time
row_places      places of rows in a server's memory: found by keys, taken, expired and free again
table_kinds     stores of tables that share width and optimizer, on all servers; the messages of a step
stores          all tables of a model, the lookups of its graph, and its extension
lookahead       lookups of a later step, during the current step
saved_tables    the rows in a checkpoint, with their ids
loaded_rows     loading of a checkpoint's rows into the servers, also into tables with other names
stored_tables   tables of a checkpoint in one process: how they are found, read and looked up
row_optimizers  the optimizer's update of only those rows for which a step has a gradient
"""
