"""DistributedDataParallel of PyTorch on processors, with a checkpoint in the current folder, as its tutorial has it."""

import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

EPOCHS = 60


def main() -> None:
    """Train to the last epoch; rank 0 saves each one, and every rank continues from what rank 0 has saved."""
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    model = DistributedDataParallel(torch.nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    first = 0
    if os.path.exists("checkpoint.pt"):
        saved = torch.load("checkpoint.pt")
        model.load_state_dict(saved["model"])
        first = saved["epoch"]
    firsts = [torch.zeros(1) for _ in range(dist.get_world_size())]
    dist.all_gather(firsts, torch.tensor([float(first)]))
    print(f"rank {rank} from epoch {first}; all ranks: {[int(each) for each in firsts]}", flush=True)
    for epoch in range(first, EPOCHS):
        inputs = torch.randn(32, 64)
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.2)
        if rank == 0:
            torch.save({"model": model.state_dict(), "epoch": epoch + 1}, "checkpoint.part")
            os.replace("checkpoint.part", "checkpoint.pt")
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
        dist.barrier()
    weights = torch.cat([each.detach().flatten() for each in model.parameters()])
    print(f"rank {rank} ends with {weights.double().sum().item():.9f}", flush=True)


if __name__ == "__main__":
    main()
