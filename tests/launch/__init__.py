"""Tests of the launcher and its agents, in the rooms of what they test; ``end_to_end`` has whole runs."""
