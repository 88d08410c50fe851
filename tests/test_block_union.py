"""Parts of ColumnTransformer and FeatureUnion as blocks. The oracle is what scikit-learn puts side by side."""

import doctest

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from taxolearn import Blocks, KernelLogisticClassifier
from taxolearn.features import as_blocks, block_union
from taxolearn.kernels import Linear

pandas = pytest.importorskip("pandas")

N = 60
RNG = np.random.default_rng(0)
FRAME = pandas.DataFrame(
    {
        "name": RNG.choice(["red apple", "green pear", "blue plum", "red plum"], N),
        "price": RNG.normal(size=N),
        "weight": RNG.normal(size=N),
        "colour": RNG.choice(["red", "green", "blue"], N),
        "rest": RNG.normal(size=N),
    }
)
LABELS = np.where(FRAME["price"] + (FRAME["colour"] == "red") > 0.3, "a", "b")
TEXTS = FRAME["name"].tolist()


def columns(**options):
    parts = [
        ("words", TfidfVectorizer(), "name"),
        ("numbers", StandardScaler(), ["price", "weight"]),
        ("colours", OneHotEncoder(), make_column_selector(pattern="colour")),
        ("none", StandardScaler(), []),
        ("left", "drop", ["price"]),
    ]
    return ColumnTransformer(parts, **{"remainder": "passthrough", "transformer_weights": {"numbers": 3.0}} | options)


def texts():
    return FeatureUnion(
        [
            ("words", TfidfVectorizer()),
            ("topics", make_pipeline(TfidfVectorizer(), TruncatedSVD(2, random_state=0))),
            ("left", "drop"),
        ],
        transformer_weights={"topics": 2.0},
    )


def dense(X):
    return np.hstack([matrix.toarray() if sp.issparse(matrix) else matrix for matrix in X.matrices])


def stacked(X):
    return X.toarray() if sp.issparse(X) else np.asarray(X)


@pytest.mark.parametrize(("make", "data"), [(columns, FRAME), (texts, TEXTS)], ids=["columns", "union"])
def test_blocks_are_the_parts_of_the_whole(make, data):
    whole = make().fit(data)
    expected = stacked(whole.transform(data))
    union = as_blocks(make())
    X = union.fit_transform(data)
    assert isinstance(X, Blocks)
    np.testing.assert_allclose(dense(X), expected, rtol=1e-12)
    np.testing.assert_allclose(dense(union.transform(data)), expected, rtol=1e-12)
    np.testing.assert_allclose(dense(as_blocks(whole).transform(data)), expected, rtol=1e-12)
    np.testing.assert_allclose(dense(clone(union).fit(data).transform(data[:7])), expected[:7], rtol=1e-12)


@pytest.mark.parametrize("whole", [as_blocks(columns()).fit(FRAME), as_blocks(columns().fit(FRAME))])
def test_sparse_stays_sparse_and_dense_stays_dense(whole):
    X = whole.transform(FRAME)
    assert X.n_features == {"words": 6, "numbers": 2, "colours": 3, "remainder": 1}
    assert [sp.issparse(matrix) for matrix in X.matrices] == [True, False, True, False]


def test_features_have_the_names_of_their_parts():
    names = as_blocks(columns()).fit(FRAME).get_feature_names_out().tolist()
    assert names == columns().fit(FRAME).get_feature_names_out().tolist()
    assert names[0] == "words__apple"
    assert names[-1] == "remainder__rest"
    assert as_blocks(columns().fit(FRAME)).get_feature_names_out().tolist() == names
    assert as_blocks(texts()).fit(TEXTS).get_feature_names_out()[-1] == "topics__truncatedsvd1"


def test_columns_of_arrays_and_parallel_parts():
    A = FRAME[["price", "weight", "rest"]].to_numpy()
    whole = ColumnTransformer([("a", StandardScaler(), slice(0, 2)), ("b", MinMaxScaler(), [False, False, True])])
    expected = whole.fit_transform(A)
    for n_jobs in (None, 2):
        X = as_blocks(clone(whole).set_params(n_jobs=n_jobs)).fit_transform(A)
        assert X.n_features == {"a": 2, "b": 1}
        np.testing.assert_allclose(dense(X), expected)
    np.testing.assert_allclose(dense(as_blocks(whole).fit_transform(A.tolist())), expected)


def test_a_pipeline_learns_a_variance_for_each_part():
    model = make_pipeline(as_blocks(columns()), KernelLogisticClassifier())
    model.fit(FRAME, LABELS)
    assert set(model[-1].blocks_in_) == {"words", "numbers", "colours", "remainder"}
    assert model[-1].hyperparameters_.kernel["numbers"] != model[-1].hyperparameters_.kernel["remainder"]
    assert model.score(FRAME, LABELS) > 0.8


def test_searches_reach_the_parts_and_the_kernels():
    model = make_pipeline(as_blocks(columns()), KernelLogisticClassifier(Linear(), tuning=None))
    assert len(cross_val_score(model, FRAME, LABELS, cv=3)) == 3
    search = GridSearchCV(model, {"blockunion__transformer__words__ngram_range": [(1, 1), (1, 2)]}, cv=2)
    search.fit(FRAME, LABELS)
    widths = {
        len(clone(model).set_params(**each)[0].fit(FRAME).transformers_["words"].vocabulary_)
        for each in search.cv_results_["params"]
    }
    assert len(widths) == 2


def test_the_given_transformer_is_not_changed_by_a_fit():
    given = columns()
    as_blocks(given).fit(FRAME)
    assert not hasattr(given, "transformers_")
    fitted = columns().fit(FRAME)
    before = fitted.named_transformers_["numbers"].mean_.copy()
    as_blocks(fitted).fit(FRAME[:20])
    np.testing.assert_array_equal(fitted.named_transformers_["numbers"].mean_, before)


def test_what_makes_no_blocks_is_rejected():
    with pytest.raises(TypeError, match="must be a ColumnTransformer or a FeatureUnion, got StandardScaler"):
        as_blocks(StandardScaler())
    with pytest.raises(NotFittedError):
        as_blocks(columns()).transform(FRAME)
    with pytest.raises(ValueError, match="all parts of transformer are dropped"):
        as_blocks(ColumnTransformer([("a", "drop", ["price"])])).fit(FRAME)


def test_the_example_is_true():
    result = doctest.testmod(block_union)
    assert result.attempted > 0
    assert result.failed == 0
