"""What a user types: one module a verb, each a few statements over the launcher's other modules.

They come together in ``launch.cli``. ``asked`` has what they share: the hosts file and how it is read.
"""
