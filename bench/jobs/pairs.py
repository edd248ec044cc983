"""Shared by the pairs of bench/python and bench/guard: medians with their uncertainty."""
import math
import statistics


def median(values):
    """The median, an interval that has that of all possible pairs, and with which probability (95 %, or as much as so many pairs
    can tell)."""
    ordered, count = sorted(values), len(values)
    # The interval follows from tosses of a coin.
    share, cut = 2.0**-count, 0
    while cut + 1 < (count + 1) // 2 and share + math.comb(count, cut + 1) * 2.0**-count <= 0.025:
        cut += 1
        share += math.comb(count, cut) * 2.0**-count
    return statistics.median(ordered), ordered[cut], ordered[-1 - cut], 100 * (1 - 2 * share)
