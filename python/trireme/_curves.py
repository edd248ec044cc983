"""Curves of a run: as text for terminals, and from the page of its report for notebooks."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from typing import Any


def _points(history: Sequence[dict[str, Any]], kind: str, key: str) -> list[tuple[float, float]]:
    found = [(record["step"], record.get(key)) for record in history if record["kind"] == kind]
    return [(float(step), float(value)) for step, value in found if value is not None and math.isfinite(value)]


def draw(history: Sequence[dict[str, Any]], key: str, width: int, height: int) -> str:
    """A picture of `height` lines below a title, at most `width` columns wide."""
    series = [("*", "training", _points(history, "step", key)), ("o", "evaluated", _points(history, "evaluation", key))]
    series = [one for one in series if one[2]]
    if not series:
        return f"{key}: nothing was recorded"
    values = [value for _, _, points in series for _, value in points]
    last = max(step for _, _, points in series for step, _ in points)
    low, high = min(values), max(values)
    columns = max(width - 10, 8)
    lines = [[" "] * columns for _ in range(height)]
    for mark, _, points in series:
        bins: dict[int, list[float]] = {}
        for step, value in points:
            bins.setdefault(min(int(step / last * (columns - 1)), columns - 1), []).append(value)
        for column, found in bins.items():
            share = (sum(found) / len(found) - low) / (high - low) if high > low else 0.0
            lines[height - 1 - round(share * (height - 1))][column] = mark
    legend = ", ".join(f"{mark} {name}" for mark, name, _ in series)
    out = [f"{key} ({legend})"]
    for number, line in enumerate(lines):
        label = f"{high:.4g}" if number == 0 else f"{low:.4g}" if number == height - 1 else ""
        out.append(f"{label:>8} |{''.join(line)}".rstrip())
    steps = f"{last:.0f} steps"
    out += [" " * 9 + "+" + "-" * columns, f"{'0':>11}{steps:>{columns - 1}}"]
    return "\n".join(out)


def pictures(page: str, lead: str) -> str:
    """The curves of a report's page, with its style, as a separate frame; `lead` stands above them."""
    style = re.search(r"<style>.*?</style>", page, flags=re.S)
    figures = re.findall(r"<figure><figcaption>(?:Loss|Accuracy)</figcaption>.*?</figure>", page, flags=re.S)
    inside = (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">{style[0] if style else ""}</head><body><main>'
        f'<p class="lead">{html.escape(lead)}</p><div class="figures">{"".join(figures)}</div></main></body></html>'
    )
    return f'<iframe srcdoc="{html.escape(inside)}" width="100%" height="420" style="border:0"></iframe>'
