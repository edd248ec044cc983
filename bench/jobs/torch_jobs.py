"""The four jobs on PyTorch, as a rival in speed: torch_jobs.py JOB THREADS [DATA_DIRECTORY [PROCESSES]]

JOB is wide (batch 128), cnn (50), mlp (100) or lstm (128, 50 tokens). Prints one line:
examples per second of the best of four rounds, and the peak memory in MiB (of the first process).
Several processes share every batch by DistributedDataParallel over Gloo, THREADS threads each.
"""
import gzip
import os
import resource
import socket
import sys
import time

import torch
from torch import nn


def images(directory):
    def read(name, header):
        with gzip.open(f"{directory}/mnist/{name}") as file:
            return torch.frombuffer(bytearray(file.read()[header:]), dtype=torch.uint8)

    return read("train-images-idx3-ubyte.gz", 16).view(-1, 1, 28, 28), read("train-labels-idx1-ubyte.gz", 8).long()


class Sentiment(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(16000, 128)
        self.lstm = nn.LSTM(128, 128, batch_first=True)
        self.out = nn.Linear(128, 2)

    def forward(self, tokens):
        return self.out(self.lstm(self.embedding(tokens))[0][:, -1])


def network(job):
    if job == "wide":
        return nn.Sequential(
            nn.Conv2d(1, 64, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(64, 256, 3), nn.ReLU(),
            nn.Conv2d(256, 512, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(8192, 2048), nn.Dropout(0.75), nn.Linear(2048, 1024), nn.Dropout(0.75), nn.Linear(1024, 10))
    if job == "cnn":
        return nn.Sequential(
            nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(3136, 1024), nn.ReLU(), nn.Dropout(0.5), nn.Linear(1024, 10))
    if job == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 500), nn.ReLU(), nn.Linear(500, 10))
    return Sentiment()


# batch, learning rate, steps of a round
JOBS = {"wide": (128, 1e-3, 6), "cnn": (50, 1e-4, 60), "mlp": (100, 1e-3, 600), "lstm": (128, 1e-3, 20)}


def distribute(model, rank, processes, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    torch.distributed.init_process_group("gloo", rank=rank, world_size=processes)
    return nn.parallel.DistributedDataParallel(model)


def run(rank, processes, port, job, threads, directory):
    whole, rate, steps = JOBS[job]
    batch = whole // processes
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    model = network(job)
    if processes > 1:
        model = distribute(model, rank, processes, port)
    if job == "lstm":
        inputs, labels = torch.randint(1, 16000, (6400, 50)), torch.randint(0, 2, (6400,))
    else:
        inputs, labels = images(directory)
    averages, schedule = None, None
    if job == "mlp":
        weights = [p for p in model.parameters() if p.dim() > 1]
        biases = [p for p in model.parameters() if p.dim() == 1]
        optimizer = torch.optim.SGD([{"params": weights, "weight_decay": 1e-4}, {"params": biases}], rate, foreach=True)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99 ** (1 / 600))
        averages = [p.detach().clone() for p in model.parameters()]
    else:
        optimizer = torch.optim.Adam(model.parameters(), rate, fused=True)

    def step(number):
        first = number * whole % (len(inputs) - whole) + rank * batch
        x, y = inputs[first:first + batch], labels[first:first + batch]
        if job == "mlp":
            x = x.float()
        elif job != "lstm":
            x = x.float() / 255
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        if schedule:
            schedule.step()
            with torch.no_grad():
                torch._foreach_lerp_(averages, list(model.parameters()), 0.01)

    for number in range(4):
        step(number)
    best = float("inf")
    for _ in range(4):
        start = time.perf_counter()
        for number in range(steps):
            step(number)
        best = min(best, (time.perf_counter() - start) / steps)
    if rank == 0:
        print(f"{whole / best:.1f} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}", flush=True)
    if processes > 1:
        torch.distributed.destroy_process_group()


def main():
    job, threads = sys.argv[1], int(sys.argv[2])
    directory = sys.argv[3] if len(sys.argv) > 3 else "data"
    processes = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    if processes == 1:
        run(0, 1, 0, job, threads, directory)
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(run, (processes, port, job, threads, directory), processes)


if __name__ == "__main__":
    main()
