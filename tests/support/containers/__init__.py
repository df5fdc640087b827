"""Containers for tests without a runtime of containers.

runtime  a stand-in for ``docker`` and ``apptainer``, which runs programs on this machine itself
fake     the stand-in on a PATH of the test's own
podman   the real podman with an image of this machine's own files
"""
