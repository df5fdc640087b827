"""Log the end of a run to MLflow, as a hook: on: {succeeded: [python3, log_to_mlflow.py]}

The chief's host needs mlflow, and MLFLOW_TRACKING_URI in its environment.
"""

import json
import sys

import mlflow

event = json.load(sys.stdin)
mlflow.set_experiment(event["name"])
with mlflow.start_run(run_name=event["run"]):
    mlflow.set_tags({"state": event["state"], "launch.run": event["run"]})
    measured = {name: value for name, value in event["metrics"].items() if value is not None}
    mlflow.log_metrics(measured, step=event["step"])
