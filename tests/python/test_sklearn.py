# needs: numpy sklearn
"""Estimators for scikit-learn: its own checks, and the hash of train() on the same numbers."""

import pathlib
import pickle
import tempfile

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import check_estimator

import trireme
from checks import raises
from trireme.sklearn import TriremeClassifier, TriremeRegressor

x, y = load_iris(return_X_y=True)
place = pathlib.Path(tempfile.mkdtemp(prefix="trireme-sklearn-"))
MODEL = """
layers: [{dense: {units: 8, activation: tanh}}, {dense: $outputs}]
loss: softmax_cross_entropy
optimizer: {rule: adam, rate: 2e-2}
train: {batch: 30, epochs: 20}
"""


def test_checks():
    """The checks that parametrize_with_checks gives to pytest. None is expected to fail."""
    estimators = (TriremeClassifier(), TriremeRegressor(), TriremeClassifier(MODEL), TriremeRegressor(missing="mean"))
    for estimator in estimators:
        results = check_estimator(estimator, on_fail=None, on_skip=None)
        failed = [(result["check_name"], result["exception"]) for result in results if result["status"] == "failed"]
        assert not failed, failed
        skipped = {result["check_name"] for result in results if result["status"] == "skipped"}
        # It asks for SCIPY_ARRAY_API in the environment, before SciPy is loaded.
        assert skipped <= {"check_array_api_input"}, skipped
        assert len(results) > 45


def test_one_hash():
    """Threads change nothing; the seed does; the network is that of train()."""
    filled = MODEL.replace("$outputs", "3")
    expected = trireme.train(filled, x, y, standardize=True, seed=7).hash
    for jobs in (None, 1, 2, -1):
        assert TriremeClassifier(MODEL, random_state=7, n_jobs=jobs).fit(x, y).hash_ == expected
    assert TriremeClassifier(MODEL, random_state=8).fit(x, y).hash_ != expected
    assert TriremeClassifier(MODEL).fit(x, y).hash_ == trireme.train(filled, x, y, standardize=True).hash
    as_dict = {
        "layers": [{"dense": {"units": 8, "activation": "tanh"}}, {"dense": "$outputs"}],
        "loss": "softmax_cross_entropy",
        "optimizer": {"rule": "adam", "rate": 2e-2},
        "train": {"batch": 30, "epochs": 20},
    }
    assert TriremeClassifier(as_dict, random_state=7).fit(x, y).hash_ == expected
    assert as_dict["layers"][1] == {"dense": "$outputs"}
    state = np.random.RandomState(3)
    drawn = np.random.RandomState(3).randint(np.iinfo(np.int32).max)
    assert (
        TriremeClassifier(MODEL, random_state=state).fit(x, y).hash_
        == TriremeClassifier(MODEL, random_state=drawn).fit(x, y).hash_
    )


def test_classes():
    names = np.array(["setosa", "versicolor", "virginica"], dtype=object)[y]
    found = TriremeClassifier(random_state=1).fit(x, names)
    assert found.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert found.score(x, names) > 0.95
    assert found.predict_proba(x).shape == (150, 3)
    assert cross_val_score(TriremeClassifier(epochs=30), x, y, cv=3).mean() > 0.9
    raises(ValueError, lambda: TriremeClassifier().fit(x, np.zeros(150)), "one class")


def test_parameters():
    two = TriremeClassifier(MODEL, epochs=2).fit(x, y)
    assert two.n_steps_ == 10
    assert TriremeClassifier(MODEL, epochs=2, batch=50).fit(x, y).n_steps_ == 6
    assert TriremeClassifier(MODEL, epochs=2, rate=1e-3).fit(x, y).hash_ != two.hash_
    assert TriremeClassifier(MODEL, set={"train.epochs": 2}).fit(x, y).hash_ == two.hash_
    by_steps = MODEL.replace("epochs: 20", "steps: 3")
    assert TriremeClassifier(by_steps).fit(x, y).n_steps_ == 3
    assert TriremeClassifier(by_steps, epochs=2).fit(x, y).hash_ == two.hash_
    raises(trireme.ModelError, lambda: TriremeClassifier(set={"train.epoch": 2}).fit(x, y), "epoch")


def test_values():
    features, values = load_diabetes(return_X_y=True)
    found = TriremeRegressor(hidden=(16,), epochs=40, random_state=0).fit(features, values)
    assert found.score(features, values) > 0.5
    # Two values of far different sizes are learned alike, and come back in their own units.
    both = np.stack([x[:, 2] * 1000 + 5e4, x[:, 3] * 1e-3], 1)
    pair = TriremeRegressor(epochs=60).fit(x[:, :2], both)
    assert pair.predict(x[:5, :2]).shape == (5, 2)
    assert pair.score(x[:, :2], both) > 0.6
    assert TriremeRegressor(epochs=1, standardize=False).fit(x[:, :2], both[:, 1]).predict(x[:, :2]).shape == (150,)


def test_gaps():
    gaps = x.copy()
    gaps[::7, 2] = np.nan
    raises(ValueError, lambda: TriremeClassifier().fit(gaps, y), "NaN")
    found = TriremeClassifier(missing="mean", epochs=30).fit(gaps, y)
    assert found.score(gaps, y) > 0.9


def test_pickle_and_save():
    found = make_pipeline(MinMaxScaler(), TriremeClassifier(random_state=2, epochs=10)).fit(x, y)
    again = pickle.loads(pickle.dumps(found))
    assert np.array_equal(again.predict_proba(x), found.predict_proba(x))
    found[-1].save(place / "kept")
    with trireme.load(place / "kept") as network:
        assert network.hash == found[-1].hash_
        assert np.array_equal(network.predict(found[0].transform(x)), found.predict_proba(x))


def test_search():
    """A search whose processes train at the same time finds the network that one training gives."""
    search = GridSearchCV(TriremeClassifier(MODEL, random_state=4), {"epochs": [1, 15]}, cv=3, n_jobs=2).fit(x, y)
    assert search.best_params_ == {"epochs": 15}
    assert search.best_estimator_.hash_ == clone(search.best_estimator_).fit(x, y).hash_


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print(name, "ok", flush=True)
