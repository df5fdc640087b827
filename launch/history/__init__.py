"""The runs on the hosts of a file, as these know them: the hosts are asked, since a file may have changed.

newest      find the newest run, or the one that ``--run`` names, and the host that leads it
listing     every run on the hosts of a file, of any name
named       the run that ``--run`` names
runs_table  runs in lines for a person
generation  number a run that starts, so that hosts know later which began last
remembered  note on this machine that a run was begun with ``--local``, and which was begun later without
"""
