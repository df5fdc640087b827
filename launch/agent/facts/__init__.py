"""The facts of this host, for ``launch check`` and ``launch diagnose``.

side_by_side  sections that run beside each other under one deadline; one that hangs costs its own part only
host          the sections of ``HostFacts``: versions, GPUs, disks
"""
