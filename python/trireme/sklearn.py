"""Estimators for scikit-learn: networks in pipelines, searches and cross-validation.

Equal data, parameters and `random_state` give an equal network, bit for bit, on any machine. `n_jobs` never changes it.
"""

from __future__ import annotations

import math
import os
import tempfile
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from joblib import effective_n_jobs  # type: ignore[import-untyped, unused-ignore]
from sklearn.base import (  # type: ignore[import-untyped, unused-ignore]
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
)
from sklearn.utils import check_random_state  # type: ignore[import-untyped, unused-ignore]
from sklearn.utils.multiclass import check_classification_targets  # type: ignore[import-untyped, unused-ignore]
from sklearn.utils.validation import check_is_fitted, validate_data  # type: ignore[import-untyped, unused-ignore]

from . import _checkpoint
from ._network import Network
from ._run import Run
from ._train import train

__all__ = ["TriremeClassifier", "TriremeRegressor"]

#: Stands for the number of outputs in a model's text or dict.
OUTPUTS = "$outputs"


class _Trained:
    """A trained network as the files of its checkpoint: it can be pickled and copied, and needs no directory."""

    def __init__(self, run: Run) -> None:
        self.files = _checkpoint.read(_checkpoint.newest(run.directory))
        self._forget()

    def _forget(self) -> None:
        self._network: Network | None = None
        self._threads = -1
        self._lock = threading.Lock()

    def write(self, folder: str | os.PathLike[str]) -> None:
        _checkpoint.write(self.files, folder)

    def predict(self, x: np.ndarray, threads: int) -> np.ndarray:
        with self._lock:
            if self._network is None or self._threads != threads:
                with tempfile.TemporaryDirectory(prefix="trireme-") as place:
                    folder = os.path.join(place, "network")
                    self.write(folder)
                    self._network = Network(folder, threads=threads)
                self._threads = threads
            return self._network.predict(x)

    def __getstate__(self) -> dict[str, Any]:
        return {"files": self.files}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.files = state["files"]
        self._forget()


def _filled(model: Any, outputs: int) -> Any:
    """A model whose `$outputs` are a number."""
    if isinstance(model, Mapping):
        return {key: _filled(value, outputs) for key, value in model.items()}
    if isinstance(model, (list, tuple)):
        return [_filled(value, outputs) for value in model]
    if isinstance(model, str):
        return outputs if model == OUTPUTS else model.replace(OUTPUTS, str(outputs))
    return model


class _Estimator(BaseEstimator):  # type: ignore[misc, unused-ignore]
    _loss: str

    def __init__(
        self,
        model: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        *,
        hidden: Sequence[int] = (64,),
        rate: float | None = None,
        batch: int | None = None,
        epochs: int | None = None,
        set: Mapping[str, Any] | None = None,
        standardize: bool = True,
        missing: str | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.model = model
        self.hidden = hidden
        self.rate = rate
        self.batch = batch
        self.epochs = epochs
        self.set = set
        self.standardize = standardize
        self.missing = missing
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing is not None
        tags.non_deterministic = False
        return tags

    def _checked(self, x: Any, *y: Any, **options: Any) -> Any:
        finite = True if self.missing is None else "allow-nan"
        return validate_data(self, x, *y, dtype=(np.float64, np.float32), ensure_all_finite=finite, **options)

    def _perceptron(self, count: int, outputs: int) -> dict[str, Any]:
        """The model where none is given."""
        hidden = [{"dense": {"units": int(units), "activation": "relu"}} for units in self.hidden]
        return {
            "name": type(self).__name__,
            "layers": [*hidden, {"dense": outputs}],
            "loss": self._loss,
            "optimizer": {"rule": "adam", "rate": 1e-2},
            "train": {"batch": min(32, count), "epochs": 100, "log_every": 0},
        }

    def _seed(self) -> int | None:
        if self.random_state is None or isinstance(self.random_state, (int, np.integer)):
            return None if self.random_state is None else int(self.random_state)
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _threads(self) -> int:
        return int(effective_n_jobs(self.n_jobs))

    def _train(self, x: np.ndarray, y: np.ndarray, outputs: int) -> None:
        model = self._perceptron(len(x), outputs) if self.model is None else _filled(self.model, outputs)
        own = {"optimizer.rate": self.rate, "train.batch": self.batch, "train.epochs": self.epochs}
        changes = {key: value for key, value in own.items() if value is not None}
        if self.epochs is not None:
            changes["train.steps"] = 0
        run = train(
            model,
            x,
            y,
            standardize=self.standardize,
            missing=self.missing,
            set={**changes, **(self.set or {})},
            seed=self._seed(),
            threads=self._threads(),
        )
        self.hash_ = run.hash
        self.history_ = run.history
        self.n_steps_ = run.step
        self._trained = _Trained(run)

    def _outputs(self, x: Any) -> np.ndarray:
        check_is_fitted(self)
        return self._trained.predict(self._checked(x, reset=False), self._threads())

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Writes the network; `trireme.load(directory)` reads it, and the command.

        Parameters
        ----------
        directory : str or path
            a new one
        """
        check_is_fitted(self)
        self._trained.write(directory)


_PARAMETERS = """
    Parameters
    ----------
    model : path, str or dict
        path of a model file, name of one that ships, its text in YAML, or a dict of the same form; in a text and in a
        dict, ``$outputs`` stands for {outputs}. None: a perceptron
    hidden : sequence of int
        numbers of units of the perceptron's hidden layers
    rate : float
        in place of the model's; of the perceptron 0.01
    batch, epochs : int
        in place of the model's; of the perceptron 32 (at most all examples) and 100
    set : dict
        further changes to the model: {{"optimizer.l2": 1e-4}}
    standardize : bool
        shift and scale each number{too} to mean 0 and deviation 1 over the training data
    missing : str
        "mean": NaN becomes the mean of the feature in the training data; None: NaN is an error
    random_state : int or RandomState
        the seed, from 0. None: the model's, which is the same in every run. A RandomState gives one
    n_jobs : int
        threads, as everywhere in scikit-learn. Never changes the result

    Attributes
    ----------
    hash_ : SHA-256 of the parameters
    history_ : records of the training, dicts
    n_steps_ : steps done
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn
"""


class TriremeClassifier(ClassifierMixin, _Estimator):  # type: ignore[misc, unused-ignore]
    __doc__ = "A network that tells classes." + "\n" + _PARAMETERS.format(outputs="the number of classes", too="")
    __doc__ += "    classes_ : the classes, sorted\n"
    _loss = "softmax_cross_entropy"

    def fit(self, X: Any, y: Any) -> TriremeClassifier:
        """Trains the network.

        Parameters
        ----------
        X : array [count, n]
            numbers
        y : array [count]
            classes

        Returns
        -------
        TriremeClassifier
            itself
        """
        X, y = self._checked(X, y)
        check_classification_targets(y)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class, {self.classes_[0]!r}; {type(self).__name__} needs two or more to tell apart")
        self._train(X, numbers.astype(np.int32), len(self.classes_))
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of all classes.

        Parameters
        ----------
        X : array [count, n]
            numbers

        Returns
        -------
        float32 array [count, classes]
            in the order of `classes_`
        """
        found = self._outputs(X)
        if found.shape[1] != len(self.classes_):
            raise ValueError(
                f"the model has {found.shape[1]} outputs for {len(self.classes_)} classes; "
                f"give its last layer {OUTPUTS} units, with softmax_cross_entropy"
            )
        return found

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest classes.

        Parameters
        ----------
        X : array [count, n]
            numbers

        Returns
        -------
        array [count]
            of `classes_`
        """
        likeliest = np.argmax(self.predict_proba(X), axis=1)
        found: np.ndarray = self.classes_[likeliest]
        return found


class TriremeRegressor(RegressorMixin, _Estimator):  # type: ignore[misc, unused-ignore]
    __doc__ = "A network that predicts values." + "\n" + _PARAMETERS.format(
        outputs="the number of values of an example", too=" of X and each value of y"
    )
    _loss = "mean_squared_error"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any) -> TriremeRegressor:
        """Trains the network.

        Parameters
        ----------
        X : array [count, n]
            numbers
        y : array [count] or [count, values]
            values

        Returns
        -------
        TriremeRegressor
            itself
        """
        X, y = self._checked(X, y, multi_output=True, y_numeric=True)
        self._one = y.ndim == 1
        values = y.reshape(len(y), -1).astype(np.float64)
        self._shift, self._scale = np.zeros(values.shape[1]), np.ones(values.shape[1])
        if self.standardize:
            # Exact sums: equal on every machine, whatever the order of addition.
            for i, column in enumerate(values.T.tolist()):
                self._shift[i] = mean = math.fsum(column) / len(column)
                self._scale[i] = math.sqrt(math.fsum((value - mean) ** 2 for value in column) / len(column)) or 1.0
        self._train(X, ((values - self._shift) / self._scale).astype(np.float32), values.shape[1])
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Values of each example."""
        found: np.ndarray = self._outputs(X) * self._scale + self._shift
        return found[:, 0] if self._one else found
