"""The events of a run, and their records."""

from __future__ import annotations

import ctypes
import dataclasses
import math
from typing import Any

from . import _layouts as L

_KINDS = {
    L.TR_EVENT_STEP: "step",
    L.TR_EVENT_PROGRESS: "progress",
    L.TR_EVENT_EVALUATION: "evaluation",
    L.TR_EVENT_CHECKPOINT: "checkpoint",
    L.TR_EVENT_WARNING: "warning",
    L.TR_EVENT_END: "end",
    L.TR_EVENT_SHARES: "shares",
}


@dataclasses.dataclass(frozen=True)
class Event:
    """An event of a run. Figures without meaning for a kind are NaN, 0 or empty.

    `record()` gives the others, as the history keeps them.
    """

    kind: str  #: "step", "progress", "evaluation", "checkpoint", "warning", "shares" or "end"
    step: int  #: steps done
    steps: int  #: to do in all
    epoch: float  #: epochs done, with fraction
    loss: float
    accuracy: float  #: share of correct classes, 0..1; NaN where values are learned
    rate: float  #: learning rate of the step
    gradient_norm: float
    examples: int  #: in this step, or evaluated
    seconds: float  #: of training since the run began
    examples_per_second: float
    name: str  #: the data of an evaluation, the path of a checkpoint, the text of a warning
    hash: str  #: of "end" and "checkpoint"
    best: bool  #: an evaluation better than all before
    perplexity: float
    metrics: dict[str, float]  #: the other results of an evaluation

    def record(self) -> dict[str, Any]:
        """The figures with a meaning for this kind, as a record of the history.

        Returns
        -------
        dict
            "kind", "step", "epoch", "loss", and the others of the kind
        """
        record: dict[str, Any] = {"kind": self.kind, "step": self.step, "epoch": self.epoch, "loss": self.loss}
        if not math.isnan(self.accuracy):
            record["accuracy"] = self.accuracy
        if not math.isnan(self.perplexity):
            record["perplexity"] = self.perplexity
        if self.kind == "evaluation":
            record["set"] = self.name
            record.update(self.metrics)
        else:
            record["rate"] = self.rate
            record["examples_per_second"] = self.examples_per_second
        return record


def metrics_of(found: Any) -> dict[str, float]:
    """A tr_metrics as a dict."""
    return {found.metric[i].name.decode(): found.metric[i].value for i in range(found.count)}


def event_at(address: Any, accuracies: bool) -> Event:
    """The event that the library reports to a listener; whether accuracies are meaningful follows from the job."""
    raw = ctypes.cast(address, ctypes.POINTER(L.tr_train_event)).contents
    return Event(
        kind=_KINDS.get(raw.kind, str(raw.kind)),
        step=raw.step,
        steps=raw.steps,
        epoch=raw.epoch,
        loss=raw.loss,
        accuracy=raw.accuracy if accuracies else math.nan,
        rate=raw.rate,
        gradient_norm=raw.gradient_norm,
        examples=raw.examples,
        seconds=raw.seconds,
        examples_per_second=raw.examples_per_second,
        name=(raw.name or b"").decode("utf-8", "replace"),
        hash=(raw.hash or b"").decode(),
        best=raw.best,
        perplexity=raw.perplexity,
        metrics=metrics_of(raw.metrics.contents) if raw.metrics else {},
    )


class History(list):  # type: ignore[type-arg]
    """Records of a run, dicts: of each reported step ("kind": "step") and each evaluation ("kind": "evaluation")."""

    def to_pandas(self) -> Any:
        """The records as a table.

        Returns
        -------
        pandas.DataFrame
            a row for each record; what a record lacks is NaN
        """
        import pandas  # type: ignore[import-untyped, unused-ignore]

        return pandas.DataFrame(list(self))

    def curves(self, key: str = "loss", width: int = 72, height: int = 12) -> str:
        """The curve of one figure as text, for a terminal.

        Parameters
        ----------
        key : str
            "loss", "accuracy" or another figure of the records
        width, height : int
            characters and lines

        Returns
        -------
        str
            lines: `*` training, `o` evaluations
        """
        from ._curves import draw

        return draw(self, key, width, height)
