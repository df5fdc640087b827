"""Checkpoints of a run: written and read by the chief alone.

saver                the checkpoints to save, to keep and to restore
restorer             the newest checkpoint that can be read
streamed_saver       write and read a checkpoint piece by piece
finished_files       the files of one checkpoint
live_save            a save while the chief takes steps: its thread, its phases, and what is read between two steps
pieces_of_variables  the operations for one piece
saved_tables         the rows of embedding tables, with their ids
row_pieces           rows that are written already: for a delta, or ahead of a checkpoint; their files
stored_tables        find such tables in a checkpoint, and read their rows
warm_start           first values from another model's checkpoint, and the names of variables and tables there
renamed_rows         rows of tables under other names
best                 the best checkpoint by a metric, and when training gets no better
ownership            one writer of a folder at a time
remote_files         a folder on the host of a parameter server
"""
