# %% A table with gaps
# Three species of penguins by four measures. Two birds were not measured; pandas reads what is missing as NaN.
import pandas
from sklearn.model_selection import GridSearchCV, train_test_split

import trireme
from trireme.sklearn import TriremeClassifier

birds = pandas.read_csv(trireme.shipped() / "data" / "penguins" / "penguins.csv")
measures = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
print(len(birds), "birds,", int(birds[measures].isna().any(axis=1).sum()), "of them with gaps")

# %%
# `missing="mean"` fills them with the mean of the training data. Names of species are classes.
x_train, x_test, y_train, y_test = train_test_split(birds[measures], birds["species"], random_state=0)
found = TriremeClassifier(missing="mean", epochs=40, random_state=1).fit(x_train, y_train)
print(f"accuracy {found.score(x_test, y_test):.3f}, hash {found.hash_[:16]}")
print(found.predict(x_test[:3]).tolist(), y_test[:3].tolist())

# %%
# Estimators of scikit-learn search and validate it like their own. `n_jobs` changes the time, never the result.
choices = {"hidden": [(8,), (32, 32)], "rate": [3e-3, 3e-2]}
search = GridSearchCV(TriremeClassifier(missing="mean", epochs=20, random_state=1), choices, cv=3, n_jobs=2)
search.fit(x_train, y_train)
print(search.best_params_, f"{search.best_estimator_.score(x_test, y_test):.3f}")

# %%
# The same table without scikit-learn: pandas goes into `train` as it is.
model = trireme.layers.model(
    [trireme.layers.dense(16, activation="relu"), trireme.layers.dense(3)],
    optimizer={"rule": "adam", "rate": 1e-2},
    train={"batch": 32, "epochs": 20},
)
run = trireme.train(model, x_train, y_train, test=(x_test, y_test), standardize=True, missing="mean")
print(run.class_names, f"{run.evaluate(x_test, y_test)['accuracy']:.3f}")
