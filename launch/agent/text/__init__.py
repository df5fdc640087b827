"""Make the output of programs fit to be shown.

gpu_notes   TensorFlow's notes about missing GPU libraries
plain_text  without what a terminal would obey
redaction   without the values of secrets, or also without what only looks like a secret
"""
