"""What a user types: one module a verb, each a few statements over the launcher's other modules.

``up`` is the one that everything else serves; it is in ``launch.cli``, where the verbs
come together. ``asked`` has what they share: the hosts file and how it is read.
"""
