"""Items of a model's `layers:`, and models of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Union

#: Only the name of a kind, or a dict of the kind and its options.
Layer = Union[str, dict[str, dict[str, Any]]]


def _plain(value: Any) -> Any:
    """Numbers of NumPy as those of Python, and all sequences as lists."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value.item() if hasattr(value, "item") else value


def make(kind: str, options: Mapping[str, Any]) -> Layer:
    """A layer with the given options; a name that is a keyword of Python ends with an underscore."""
    given = {key.rstrip("_"): _plain(value) for key, value in options.items() if value is not None}
    return {kind: given} if given else kind


def model(
    layers: Sequence[Layer],
    *,
    loss: str | Mapping[str, Any] | Sequence[Any] = "softmax_cross_entropy",
    optimizer: Mapping[str, Any] | None = None,
    train: Mapping[str, Any] | None = None,
    input: Mapping[str, Any] | None = None,
    name: str = "model",
    seed: int = 1,
) -> dict[str, Any]:
    """A model of layers, first layer first, as a dict that `trireme.train` takes.

    Parameters
    ----------
    layers : list
        results of the functions of `trireme.layers`, or names and dicts as in a model file
    loss : str, dict or list
        "softmax_cross_entropy" for classes, "mean_squared_error" for values, ...
    optimizer : dict
        {"rule": "adam", "rate": 1e-3} where it is not given
    train : dict
        of the run; "batch" is 32 and "epochs" 10 where they are not given, and "steps" neither
    input : dict
        preparation of an example before the first layer: {"scale": 1 / 255}
    name : str
        its name in reports
    seed : int
        initial weights, order of examples and dropout follow from it

    Returns
    -------
    dict
        a model file's contents
    """
    if isinstance(layers, (str, Mapping)):
        raise TypeError(f"layers: a list of layers is wanted, not {type(layers).__name__}")
    run = {"batch": 32, **(train or {})}
    if "steps" not in run:
        run.setdefault("epochs", 10)
    return {
        "name": name,
        "seed": seed,
        **({"input": _plain(input)} if input else {}),
        "layers": _plain(list(layers)),
        "loss": _plain(loss),
        "optimizer": _plain(optimizer or {"rule": "adam", "rate": 1e-3}),
        "train": _plain(run),
    }
