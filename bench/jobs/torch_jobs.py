"""The jobs on PyTorch, as a rival in speed:

    torch_jobs.py JOB THREADS [--data DIRECTORY] [--processes N] [--way eager|compile|channels_last]

JOB is one of rivals.JOBS. Prints one line: examples per second of the best round, and the peak memory in MiB (of the
first process). Several processes share every batch by DistributedDataParallel over Gloo, THREADS threads each.
"""
import argparse
import os
import socket

import rivals
import torch
from torch import nn
from torch_networks import Block, Sentiment, UNet, convolution, resnet


def small_block(inputs, filters):
    stride = filters // inputs
    return Block(inputs, [(filters, 3, stride), (filters, 3, 1)], stride)


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
        model = nn.Sequential(nn.Flatten(), nn.Linear(784, 500), nn.ReLU(), nn.Linear(500, 10))
        for layer in (model[1], model[3]):
            nn.init.trunc_normal_(layer.weight, std=0.1, a=-0.2, b=0.2)
        return model
    if job == "residual":
        return nn.Sequential(
            *convolution(3, 16, 3), nn.ReLU(), small_block(16, 16), small_block(16, 32), small_block(32, 64),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    if job in ("resnet18", "resnet50"):
        return resnet(int(job[6:]))
    if job == "unet":
        return UNet()
    return Sentiment(512, 2) if job == "lstm2" else Sentiment(128, 1)


def examples(name, directory):
    """Inputs and labels, and the factor of an input once it is a float."""
    if name in ("lstm", "lstm2"):
        return torch.randint(1, rivals.WORDS, (rivals.SENTENCES, rivals.TOKENS)), torch.randint(0, 2, (rivals.SENTENCES,)), None
    if name == "residual":
        images = torch.randint(0, 256, (rivals.COLOUR_IMAGES, 3, 32, 32), dtype=torch.uint8)
        return images, torch.randint(0, 10, (rivals.COLOUR_IMAGES,)), 1 / 255
    if name in ("resnet18", "resnet50"):
        return torch.randint(0, 256, (256, 3, 96, 96), dtype=torch.uint8), torch.randint(0, 10, (256,)), 1 / 255
    if name == "unet":
        return torch.randint(0, 256, (32, 3, 128, 128), dtype=torch.uint8), torch.randint(0, 2, (32, 128 * 128)).float(), 1 / 255
    pixels, labels = (torch.frombuffer(part, dtype=torch.uint8) for part in rivals.mnist(directory))
    return pixels.view(-1, 1, 28, 28), labels.long(), 1 if name == "mlp" else 1 / 255


def distribute(model, rank, processes, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    torch.distributed.init_process_group("gloo", rank=rank, world_size=processes)
    return nn.parallel.DistributedDataParallel(model)


def run(rank, port, choice):
    job = rivals.JOBS[choice.job]
    batch = job.batch // choice.processes
    torch.set_num_threads(choice.threads)
    torch.manual_seed(1)
    model = network(choice.job)
    form = torch.channels_last if choice.way == "channels_last" else torch.contiguous_format
    if form == torch.channels_last:
        model = model.to(memory_format=form)
    if choice.way == "compile":
        model = torch.compile(model)
    if choice.processes > 1:
        model = distribute(model, rank, choice.processes, port)
    inputs, labels, scale = examples(choice.job, choice.data)
    averages, schedule = None, None
    if choice.job == "mlp":
        weights = [p for p in model.parameters() if p.dim() > 1]
        biases = [p for p in model.parameters() if p.dim() == 1]
        groups = [{"params": weights, "weight_decay": 1e-4}, {"params": biases}]
        optimizer = torch.optim.SGD(groups, job.rate, foreach=True)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99 ** (1 / 600))
        averages = [p.detach().clone() for p in model.parameters()]
    elif choice.job in ("residual", "resnet18", "resnet50"):
        optimizer = torch.optim.SGD(model.parameters(), job.rate, momentum=0.9, fused=True)
    else:
        optimizer = torch.optim.Adam(model.parameters(), job.rate, fused=True)

    measure = nn.functional.binary_cross_entropy_with_logits if choice.job == "unet" else nn.functional.cross_entropy

    def step(number):
        first = number * job.batch % (len(inputs) - job.batch + 1) + rank * batch
        x, y = inputs[first:first + batch], labels[first:first + batch]
        if scale is not None:
            x = x.float()
        if scale not in (None, 1):
            x = x * scale
        if form == torch.channels_last:
            x = x.contiguous(memory_format=form)
        optimizer.zero_grad(set_to_none=True)
        measure(model(x), y).backward()
        optimizer.step()
        if schedule:
            schedule.step()
            with torch.no_grad():
                torch._foreach_lerp_(averages, list(model.parameters()), 0.01)

    rate = rivals.time_steps(step, job)
    if rank == 0:
        rivals.tell(rate)
    if choice.processes > 1:
        torch.distributed.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("job", choices=rivals.JOBS)
    parser.add_argument("threads", type=int)
    parser.add_argument("--data", default="data")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--way", choices=["eager", "compile", "channels_last"], default="eager")
    choice = parser.parse_args()
    if choice.processes == 1:
        run(0, 0, choice)
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(run, (port, choice), choice.processes)


if __name__ == "__main__":
    main()
