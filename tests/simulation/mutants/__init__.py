"""Proof that the world can find faults: agents with a mistake in them must break a promise in some history.

Each mutant runs in a process of its own, in which modules of the product are imported with another text.

reverts    mends of this repository's history, each taken out
keepers    mistakes in the keeper's decisions
launchers  mistakes in the launcher
drawn      small mistakes, drawn by seed
texts      a module's text as lines, tokens and statements
mutant     one mutant: the texts that it replaces
histories  the process of one mutant, which runs one history after another
hunt       the search for a history that finds a mutant
stories    the histories of a hunt, in their order
"""
