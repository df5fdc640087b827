"""The launcher in tests: as a user runs it, and parts of it among fakes.

facts            evidence of hosts on which everything is right, with changes
fakes            hosts and channels without machines
jobs             jobs for runs that go on until a test ends them
laid_code        the launcher's code in a working folder, as after an earlier verb
launcher         the launcher as a process on this machine
leftovers        the answer of a host where nothing is left
lingering        fake hosts whose user manager starts at boot what the user has enabled
machine          processes and locks that are left on this machine
over_ssh         the launcher as a process, with a hosts file for fake hosts
random_records   dataclasses with random values
statuses         statuses of a run as a lead reports them
tiny_wheels      wheels of a few hundred bytes, and lock files that name them
"""
