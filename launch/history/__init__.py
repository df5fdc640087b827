"""The runs of a name, as the hosts know them: the hosts are asked, since a file may have changed.

newest      find the newest run and the host that leads it
generation  number a run that starts, so that hosts know later which began last
remembered  note on this machine that a run was begun with ``--local``, and which was begun later without
"""
