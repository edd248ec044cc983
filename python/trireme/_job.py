"""The job: models by path, name, text, dict or layers; sets of examples and their names in the model."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, Union

from ._arrays import Examples
from ._errors import NotFoundError
from ._shipped import shipped

#: The types that `train` takes as a model.
Model = Union[str, "os.PathLike[str]", Mapping[str, Any], Sequence[Any]]


def take_model(model: Model) -> dict[str, str]:
    """The model as members of the settings."""
    if isinstance(model, Mapping):
        return {"model_text": json.dumps(model, ensure_ascii=False, indent=1)}
    if isinstance(model, str) and ("\n" in model or ": " in model):
        return {"model_text": model}
    if isinstance(model, (str, os.PathLike)):
        return {"model": os.fspath(_find(model))}
    from ._layer import model as whole

    return {"model_text": json.dumps(whole(model), ensure_ascii=False, indent=1)}


def _find(model: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """A file, or the name of a model that ships."""
    path = pathlib.Path(model)
    if path.exists() or path.name != str(model) or path.suffix:
        return path
    found = shipped() / "models" / f"{model}.yaml"
    if not found.exists():
        names = sorted(other.stem for other in found.parent.glob("*.yaml"))
        raise NotFoundError(f"{str(model)!r} is no file and none of the models that ship: {', '.join(names)}")
    return found


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def take_changes(changes: Any) -> list[str]:
    """Changes to a model, "optimizer.rate=1e-3" each."""
    return [f"{key}={_value(value)}" for key, value in changes.items()] if isinstance(changes, Mapping) else list(changes)


def take_strategy(strategy: str | Mapping[str, Any] | None) -> str | None:
    """A strategy by name, with options after it ("local-sgd,every=8"), or as a dict ({"local-sgd": {"every": 8}})."""
    if strategy is None or isinstance(strategy, str):
        return strategy
    if len(strategy) != 1:
        raise ValueError(f"strategy: one name with its options is wanted, not {sorted(strategy)}")
    ((name, options),) = strategy.items()
    return ",".join([name, *[f"{key}={_value(value)}" for key, value in (options or {}).items()]])


class Data:
    """The sets that come from memory."""

    def __init__(self) -> None:
        self.examples: list[tuple[str, Examples]] = []
        self.set: list[str] = []
        self.class_names: list[str] | None = None

    def add(self, name: str, x: Any, y: Any, options: Mapping[str, Any]) -> None:
        extra = "".join(f", {key}: {json.dumps(value)}" for key, value in options.items() if value not in (None, False))
        if not isinstance(x, Mapping) or hasattr(x, "iloc"):
            self._add(name, x, y)
            self.set.append(f"data.{name}={{memory: {{name: {name}{extra}}}}}")
            return
        if len(x) < 2:
            raise ValueError("x: a mapping of inputs has two or more; give a single one as it is")
        parts = []
        for number, (key, values) in enumerate(x.items()):
            self._add(f"{name}.{key}", values, y if number == 0 else None)
            parts.append(f"{key}: {{memory: {{name: {json.dumps(f'{name}.{key}')}}}}}")
        self.set.append(f"data.{name}={{join: {{sources: {{{', '.join(parts)}}}}}}}")

    def _add(self, name: str, x: Any, y: Any) -> None:
        examples = Examples(x, y, self.class_names if name != "train" and y is not None else None)
        self.class_names = self.class_names or examples.class_names
        self.examples.append((name, examples))
