"""This host's part of ``launch diagnose``.

sections        everything that may explain the state of a run, in pieces
process_report  the live processes of a run, and what they wait for
run_files       the files of a run, bounded and without secrets
"""
