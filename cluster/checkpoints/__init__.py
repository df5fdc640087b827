"""Checkpoints of a run: written and read by the chief alone.

saver                the checkpoints to save, to keep and to restore
restorer             the newest checkpoint that can be read
streamed_saver       write and read a checkpoint piece by piece
finished_files       the files of one checkpoint
live_save            a save that goes on while the chief takes steps
background           the thread of such a save
pieces_of_variables  the operations for one piece
saved_tables         the rows of embedding tables, with their ids
last_pieces          what has changed last, written once the chief goes on
row_pieces           rows that are written already: for a delta, or ahead of a checkpoint
row_files            the files of such rows
stored_tables        find such tables in a checkpoint, and read their rows
warm_start           first values from another model's checkpoint
warm_choice          its variables and tables, under their names in that checkpoint
renamed_rows         rows of tables under other names
best                 the best checkpoint by a metric, and when training gets no better
ownership            one writer of a folder at a time
remote_files         a folder on the host of a parameter server
"""
