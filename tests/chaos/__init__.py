"""Chaos: seeded random faults on fake hosts, and what must be true of each run that met them: make chaos

    faults      what can go wrong, where, and when; what may be combined
    trial       a trial out of its seed: settings of a run, and the faults that it meets
    verdict     what is right for a trial, and whether what was seen is it
    seen        what is seen of a run: status, logs, checkpoints, what is left on the hosts
    injectors   making the faults happen on fake hosts
    arena       carrying out one trial
    figures     the table of times and losses at the end
    job/        what is trained: every worker has all examples, so that every order gives the same sums

``trial``, ``verdict`` and ``figures`` are functions of values; the others touch hosts, and clocks.
"""
