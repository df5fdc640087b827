"""Fit a line to points by gradient descent, and report each step to the launcher."""

import json
import os
import time

POINTS = [(x / 10, 3 * x / 10 + 1) for x in range(10)]
RATE, STEPS = float(os.environ.get("RATE", "0.5")), 20

slope = shift = 0.0
for step in range(1, STEPS + 1):
    errors = [slope * x + shift - y for x, y in POINTS]
    slope -= RATE * sum(error * x for error, (x, _) in zip(errors, POINTS)) / len(POINTS)
    shift -= RATE * sum(errors) / len(POINTS)
    loss = sum(error * error for error in errors) / len(POINTS)
    with open(os.environ["LAUNCH_PROGRESS"], "a") as progress:
        print(json.dumps({"step": step, "loss": loss}), file=progress)
    time.sleep(0.05)
print(f"slope {slope:.2f}, loss {loss:.4f}")
