"""The states of a run and of a task, as ``status --json`` has them. ``supervise`` says what each means."""

OF_RUN = ("starting", "running", "succeeded", "failed", "stopped")
ENDED = ("succeeded", "failed", "stopped")  # of a run

OF_TASK = ("starting", "running", "restarting", "succeeded", "failed", "stopped", "lost")
ALIVE = ("starting", "running", "restarting")  # of a task
