"""The runs on the hosts of a file, as these know them: the hosts are asked, since a file may have changed.

known_runs  find every run, the one that ``--run`` names, and the newest, with the host that leads it
remembered  note on this machine that a run was begun with ``--local``, and which was begun later without
"""
