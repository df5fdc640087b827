"""This host's part of ``launch diagnose``.

sections  all facts that may explain the state of a run, in pieces
evidence  the files and the live processes of a run, bounded and without secrets
"""
