"""``launch diagnose``: collect everything that may explain the state of a run in one archive.

collect   ask all hosts under one deadline
symptoms  find what looks wrong in their answers, and put the newest steps of all tasks on one time line
summary   write it in words, and pack all in an archive, readable by its owner alone
"""
