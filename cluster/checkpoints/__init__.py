"""Checkpoints of a run. Only the chief writes and reads them.

saver                the checkpoints to save, to keep and to restore
owned_folder         their folder: one writer at a time, and the newest readable checkpoint
streamed_saver       write and read a checkpoint piece by piece
finished_files       the files of one checkpoint, also on another task's host
live_save            a save while the chief takes steps: its thread, its phases, and the reads between two steps
pieces_of_variables  the operations for one piece
row_pieces           rows in addition to variables: the interface for them, and the rows that are already in files
warm_start           first values from another model's checkpoint, and the names of variables and tables in it
best                 the best checkpoint by a metric, and the end of training without improvement
"""
