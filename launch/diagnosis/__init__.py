"""``launch diagnose``: collect everything that may explain the state of a run in one archive.

collect   ask all hosts under one deadline
symptoms  find what looks wrong in their answers
summary   write it in words, with the newest steps of all tasks on one time line
archive   pack it, readable by its owner alone
"""
