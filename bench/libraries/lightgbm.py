"""LightGBM: boosted trees."""

import importlib

import numpy as np

from bench.libraries.contracts import FitJob, FittedJob, JobModel, one_answer
from bench.problems.jobs import Job, held_out_tenth

_RATES = (0.1, 0.05)
_MOST_ROUNDS = 1000
_PATIENCE = 30  # rounds without a gain


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


JOB_MODELS = {
    "LightGBM": JobModel(
        boosting,
        f"learning_rate of 0.1, 0.05; rounds, at most {_MOST_ROUNDS}, and rate by the log loss of a held-out tenth, "
        f"after {_PATIENCE} rounds without a gain; no fit to all rows",
        takes=lambda job: not job.is_sparse,
    )
}
