"""Checkpoints of a run. Only the chief writes and reads them.

saver                the checkpoints of one run: saves that are due, the final save, and restoring
owned_folder         the folder of these checkpoints: one writer at a time, and the newest readable checkpoint
streamed_saver       write and read a checkpoint piece by piece
finished_files       the files of one checkpoint, also on another task's host
live_save            a save while the chief takes steps: its thread, its phases, and the reads between two steps
pieces_of_variables  the operations for one piece
row_pieces           rows that a checkpoint has in addition to variables: their interface, and the files of written rows
warm_start           first values from another model's checkpoint, and the names of its variables and tables
best                 the best checkpoint by a metric, and early stopping
"""
