"""Shared by the rivals in speed: the sizes of the jobs, their data, and the timing of steps.

`images` is None where the data of a job are made on the spot: noise of the right shape.
"""
import collections
import gzip
import resource
import time

Job = collections.namedtuple("Job", "batch rate steps")

# steps: those of a round
JOBS = {
    "wide": Job(128, 1e-3, 6),
    "cnn": Job(50, 1e-4, 60),
    "mlp": Job(100, 1e-3, 600),
    "lstm": Job(128, 1e-3, 20),
    "residual": Job(128, 0.05, 12),
    "resnet18": Job(16, 0.05, 6),
    "resnet50": Job(8, 0.05, 4),
    "unet": Job(8, 1e-4, 2),
    "lstm2": Job(64, 1e-3, 4),
}
WARM, ROUNDS = 4, 4
SENTENCES, TOKENS, WORDS = 6400, 50, 16000
COLOUR_IMAGES = 2560


def mnist(directory, part="train"):
    """The bytes of the images and of their labels; the other part is t10k."""

    def read(name, header):
        with gzip.open(f"{directory}/mnist/{name}") as file:
            return bytearray(file.read()[header:])

    return read(f"{part}-images-idx3-ubyte.gz", 16), read(f"{part}-labels-idx1-ubyte.gz", 8)


def time_steps(step, job, warm=WARM):
    """Calls step(number) for a few rounds, after `warm` calls; examples per second of the best one."""
    _, best = [step(number) for number in range(warm)], float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for number in range(job.steps):
            step(number)
        best = min(best, (time.perf_counter() - start) / job.steps)
    return job.batch / best


def tell(rate):
    """Prints the rate and the peak memory of this process in MiB."""
    print(f"{rate:.1f} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}", flush=True)
