"""Runs of PyTorch under `launch up` on a real NVIDIA card: ``python -m tests.benchmarks.cards [OUT]``."""
