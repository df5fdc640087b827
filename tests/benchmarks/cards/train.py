"""A program of PyTorch for one card, as somebody wrote it who does not know this launcher.

``python train.py STEPS [FAULT]``. It prints ``step N loss L`` ten times a second, and keeps its model in ``model.pt``.

FAULT: ``stray`` reads beyond its memory on the card at step 100, ``greedy`` wants more memory than the card has,
``busy`` waits for minutes of work of the card without a processor, ``idle`` waits for nobody.
"""

import os
import sys
import time

import torch

SIDE = 4096


def main() -> None:
    """Train a layer of 4096 × 4096 in bfloat16, from ``model.pt`` if it exists."""
    steps, fault = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
    device = torch.device("cuda")
    model = torch.nn.Linear(SIDE, SIDE, device=device, dtype=torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    first = 0
    if os.path.exists("model.pt"):
        saved = torch.load("model.pt", map_location=device)
        model.load_state_dict(saved["model"])
        first = saved["step"]
    print(f"from step {first} on {torch.cuda.get_device_name(device)}", flush=True)
    batch = torch.randn(SIDE, SIDE, device=device, dtype=torch.bfloat16)
    printed, began = time.monotonic(), time.monotonic()
    for step in range(first, steps):
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        value = loss.item()
        if time.monotonic() > printed + 0.1:
            printed = time.monotonic()
            print(f"step {step} loss {value:.4f}", flush=True)
        if step % 500 == 499:
            torch.save({"model": model.state_dict(), "step": step + 1}, "model.part")
            os.replace("model.part", "model.pt")
        if step == 100:
            fail(fault, batch)
    print(f"{(steps - first) / (time.monotonic() - began):.2f} steps per second", flush=True)


def fail(fault: str, batch: torch.Tensor) -> None:
    """Do what FAULT names."""
    if fault == "stray":
        torch.zeros(8, device=batch.device)[torch.tensor([1 << 40], device=batch.device)].sum().item()
    elif fault == "greedy":
        torch.empty(1 << 40, dtype=torch.uint8, device=batch.device)
    elif fault == "busy":
        done = torch.cuda.Event(blocking=True)  # the thread sleeps until the card has come to it
        ends = time.monotonic() + 60
        while time.monotonic() < ends:
            for _ in range(2000):
                batch @ batch
            done.record()
            done.synchronize()
    elif fault == "idle":
        time.sleep(3600)


if __name__ == "__main__":
    main()
