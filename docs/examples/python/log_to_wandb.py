"""Log the end of a run to Weights & Biases, as a hook: on: {succeeded: [python3, log_to_wandb.py]}

The chief's host needs wandb. Its key is a secret of the hosts file: secrets: [WANDB_API_KEY]
"""

import json
import sys

import wandb

event = json.load(sys.stdin)
run = wandb.init(project=event["name"], name=event["run"], tags=[event["state"]])
run.summary.update({name: value for name, value in event["metrics"].items() if value is not None})
run.finish()
