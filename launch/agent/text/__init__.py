"""Make the output of programs fit to be shown.

plain_text  without what a terminal would obey
redaction   without the values of secrets, or also without what only looks like a secret
"""
