"""Checkpoints of a run: written and read by the chief alone.

saver                the checkpoints to save, to keep and to restore
owned_folder         their folder: one writer at a time, and the newest checkpoint that can be read
streamed_saver       write and read a checkpoint piece by piece
finished_files       the files of one checkpoint, also those on another task's host
live_save            a save while the chief takes steps: its thread, its phases, and what is read between two steps
pieces_of_variables  the operations for one piece
row_pieces           rows beside variables: what offers them, and those that are written already, in files
warm_start           first values from another model's checkpoint, and the names of variables and tables there
best                 the best checkpoint by a metric, and when training gets no better
"""
