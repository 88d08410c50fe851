"""LightGBM: boosted trees."""

import importlib
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from bench.libraries.contracts import FitJob, FittedJob, JobModel, one_answer
from bench.problems.features import dense_table_features
from bench.problems.jobs import Job, held_out_tenth

_RATES = (0.1, 0.05)
_MOST_ROUNDS = 1000
_PATIENCE = 30  # rounds without a gain
_COMPONENTS = 100  # of the tf-idf of a title
_SECONDS = 150.0  # of one setting
# With the defaults, rounds on hundreds of classes can make the held-out loss worse from the first one on.
_TABLE_SETTINGS: dict[str, dict[str, Any]] = {
    "defaults": {"learning_rate": 0.1},
    "cautious": {
        "learning_rate": 0.05,
        "num_leaves": 15,
        "reg_lambda": 10.0,
        "min_child_weight": 0.1,
        "colsample_bytree": 0.5,
        "max_bin": 63,
    },
}


def boosting(job: Job, n_threads: int) -> FitJob:
    """Stop by a held-out tenth, and take the better rate; the model is not fitted to that tenth afterwards."""
    library = importlib.import_module("lightgbm")

    def run() -> FittedJob:
        held_out, rest = held_out_tenth(job.y)
        models = {}
        for rate in _RATES:
            model = library.LGBMClassifier(
                n_estimators=_MOST_ROUNDS, learning_rate=rate, n_jobs=n_threads, random_state=0, verbose=-1
            )
            stop = library.early_stopping(_PATIENCE, verbose=False)
            models[rate] = model.fit(
                job.X[rest], job.y[rest], eval_set=[(job.X[held_out], job.y[held_out])], callbacks=[stop]
            )
        rate = min(models, key=lambda each: models[each].best_score_["valid_0"]["multi_logloss"])
        best = models[rate]
        setting = f"learning_rate {rate:g}, {best.best_iteration_} rounds"
        return one_answer(job, None, best.predict_proba, np.asarray(best.classes_), setting)

    return run


def table_boosting(job: Job, n_threads: int, seconds: float) -> FitJob:
    """Take the better setting; stop by a held-out tenth, or after so many seconds; no fit to that tenth afterwards."""
    library = importlib.import_module("lightgbm")

    def run() -> FittedJob:
        features, codes = dense_table_features(_COMPONENTS)
        X = np.asarray(features.fit_transform(job.X), dtype=np.float32)
        held_out, rest = held_out_tenth(job.y)
        models = {}
        for setting, given in _TABLE_SETTINGS.items():
            model = library.LGBMClassifier(
                n_estimators=_MOST_ROUNDS, n_jobs=n_threads, random_state=0, verbose=-1, **given
            )
            models[setting] = model.fit(
                X[rest],
                job.y[rest],
                eval_set=[(X[held_out], job.y[held_out])],
                categorical_feature=codes,
                callbacks=[library.early_stopping(_PATIENCE, verbose=False), _stop_after(seconds)],
            )
        setting = min(models, key=lambda each: models[each].best_score_["valid_0"]["multi_logloss"])
        best = models[setting]

        def proba(X: Any) -> Any:
            return best.predict_proba(np.asarray(X, dtype=np.float32))

        return one_answer(job, features, proba, np.asarray(best.classes_), f"{setting}, {best.best_iteration_} rounds")

    return run


def _stop_after(seconds: float) -> Callable[[Any], None]:
    """A callback that ends the rounds as if no more were asked for."""
    library = importlib.import_module("lightgbm")
    until = time.perf_counter() + seconds

    def stop(now: Any) -> None:
        if time.perf_counter() > until:
            raise library.callback.EarlyStopException(now.iteration, now.evaluation_result_list)

    return stop


JOB_MODELS = {
    "LightGBM": JobModel(
        boosting,
        f"learning_rate of 0.1, 0.05; rounds, at most {_MOST_ROUNDS}, and rate by the log loss of a held-out tenth, "
        f"after {_PATIENCE} rounds without a gain; no fit to all rows",
        takes=lambda job: not job.is_sparse,
    )
}
_CAUTIOUS = ", ".join(f"{name} {value:g}" for name, value in _TABLE_SETTINGS["cautious"].items())
TABLE_MODELS = {
    "LightGBM": JobModel(
        partial(table_boosting, seconds=_SECONDS),
        f"{_COMPONENTS} components of the tf-idf of the title by TruncatedSVD, numbers, codes of categories, parts of "
        f"dates; its defaults, and {_CAUTIOUS}; setting and rounds, at most {_MOST_ROUNDS} and {_SECONDS:g} s each, by "
        f"the log loss of a held-out tenth, after {_PATIENCE} rounds without a gain; no fit to all rows",
    )
}
