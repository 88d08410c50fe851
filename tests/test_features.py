"""Features of tables."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import taxolearn
from taxolearn import Blocks, KernelLogisticClassifier
from taxolearn.features import TableFeatures
from taxolearn.files.container import read_container, write_container
from taxolearn.kernels import Linear

NAMES = ["red apples", "green apples", "red pears", "blue plums"]
MORE = ["from the south", "", "in a box", "from the north"]
PRICES = [1.0, 2.0, 4.0, 9.0]
TABLE = {"name": NAMES, "more": MORE, "price": PRICES, "weight": [3.0, 3.0, 3.0, 3.0]}


def plain(**options):
    return TableFeatures(**{"words": (1, 1), "characters": None} | options)


def test_words_are_those_of_scikit_learn():
    ours = plain(words=(1, 2)).fit(NAMES)
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"(?u)\b\w+\b").fit(NAMES)
    np.testing.assert_array_equal(ours.get_feature_names_out(), vectorizer.get_feature_names_out())
    np.testing.assert_allclose(
        ours.transform(MORE + NAMES).toarray(), vectorizer.transform(MORE + NAMES).toarray(), atol=1e-7
    )


def test_characters_of_short_texts():
    assert list(TableFeatures().fit(NAMES).vectorizers_) == ["words", "characters"]
    assert list(TableFeatures().fit([name * 50 for name in NAMES]).vectorizers_) == ["words"]
    names = TableFeatures(words=None, characters=(3, 3)).fit(NAMES).get_feature_names_out()
    assert "'red'" in names
    assert "' re'" in names


def test_rare_sequences_are_left_out_of_many_rows():
    texts = [f"word{k // 2} single{k}" for k in range(50)]
    assert len(plain().fit(texts).get_feature_names_out()) == 25
    assert len(plain(min_df=1).fit(texts).get_feature_names_out()) == 75
    assert len(plain(max_features=7).fit(texts).get_feature_names_out()) == 7


def test_several_texts_are_read_as_one():
    both = plain(text=["name", "more"]).fit(TABLE)
    assert {"apples", "south"} <= set(both.get_feature_names_out())
    joined = [f"{a}\n{b}" for a, b in zip(NAMES, MORE, strict=True)]
    np.testing.assert_array_equal(both.transform(TABLE).toarray(), plain().fit(joined).transform(joined).toarray())


def test_numbers_are_standardized():
    features = plain(numeric=["price", "weight"]).fit(TABLE)
    expected = StandardScaler().fit_transform(np.column_stack([PRICES, TABLE["weight"]]))
    X = features.transform(TABLE)
    assert isinstance(X, np.ndarray)
    assert X.dtype == np.float32
    np.testing.assert_allclose(X, expected, rtol=1e-6)
    assert features.get_feature_names_out().tolist() == ["price", "weight"]
    # Texts of numbers are numbers, and what is missing is the mean.
    other = {"price": ["4", "", None, float("nan")], "weight": ["3", "1e0", "-2", " 5 "]}
    got = features.transform(other)
    np.testing.assert_allclose(got[:, 0], [0, 0, 0, 0], atol=1e-7)
    np.testing.assert_allclose(got[:, 1], [0, -2, -5, 2])


def test_missing_numbers_have_a_feature_if_fit_has_seen_some():
    table = {"price": [1.0, None, 4.0, 9.0], "weight": [3.0, 2.0, 1.0, 0.0], "size": ["", "", None, float("nan")]}
    features = plain(numeric=["price", "weight", "size"]).fit(table)
    assert features.get_feature_names_out().tolist() == ["price", "weight", "size", "price=missing"]
    X = features.transform(table)
    np.testing.assert_array_equal(X[:, 3], [0, 1, 0, 0])
    np.testing.assert_array_equal(X, plain(numeric=["price", "weight", "size"]).fit_transform(table))
    expected = StandardScaler().fit_transform([[1.0, 3.0], [np.nan, 2.0], [4.0, 1.0], [9.0, 0.0]])
    np.testing.assert_allclose(X[:, :2], np.nan_to_num(expected), rtol=1e-6)
    # Where none was missing, one counts as the mean.
    assert features.transform({"price": [None], "weight": [None], "size": [None]}).tolist() == [[0, 0, 0, 1]]


def test_columns_with_heavy_tails_are_bent():
    random = np.random.default_rng(0)
    normal = random.normal(size=3000)
    table = {
        "price": np.exp(3 * normal),
        "count": np.floor(np.exp(2 * normal)),
        "balance": np.sinh(3 * normal),
        "error": np.where(np.arange(3000) == 7, 1e20, 0.0),
        "tiny": np.where(np.arange(3000) == 7, 1e30, 1e-300),
        "size": normal,
    }
    table["price"][:100] = np.nan
    columns = list(table)
    features = plain(numeric=columns).fit(table)
    assert (features.numbers_.width > 0).tolist() == [True, True, True, True, True, False]
    X = features.transform(table)
    assert np.isfinite(X).all()
    for k, name in enumerate(columns[:3]):
        known = ~np.isnan(table[name])
        order = np.argsort(table[name][known], kind="stable")
        assert (np.diff(X[known, k][order]) >= 0).all()
        assert np.abs(X[:, k]).max() < 6
        np.testing.assert_allclose(X[known, k].std(), 1.0, rtol=1e-5)
    # Prices are as good as their logarithms: evenly spread over the orders of magnitude.
    assert np.corrcoef(X[100:, 0], normal[100:])[0, 1] > 0.99
    np.testing.assert_allclose(X[:, 5], StandardScaler().fit_transform(normal[:, None])[:, 0], rtol=1e-5, atol=1e-6)
    # Whatever comes later is finite.
    assert np.isfinite(features.transform({name: [1e30, -1e30, 0.0] for name in columns})).all()


def test_columns_without_numbers_are_zero():
    features = plain(numeric=["n", "price"]).fit({"n": [None, "", float("nan"), None], "price": PRICES})
    np.testing.assert_array_equal(features.transform({"n": [None, 2.0], "price": [4.0, 4.0]})[:, 0], [0, 2])


def test_categories_have_a_feature_for_each_value():
    table = {"colour": [" red", "green", "red", None], "size": [1.0, 2, "3", float("nan")], "price": PRICES}
    features = plain(numeric=["price"], categorical=["colour", "size"]).fit(table)
    names = ["price", "colour=", "colour=green", "colour=red", "size=", "size=1", "size=2", "size=3"]
    assert features.get_feature_names_out().tolist() == names
    X = features.transform(table)
    assert isinstance(X, np.ndarray)
    np.testing.assert_array_equal(X[:, 1:4], [[0, 0, 1], [0, 1, 0], [0, 0, 1], [1, 0, 0]])
    np.testing.assert_array_equal(X[:, 4:], [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0]])
    np.testing.assert_array_equal(features.fit_transform(table), X)


def test_rare_and_unknown_categories_share_a_feature():
    table = {"c": ["a", "b"] * 30 + ["x", "y", ""], "d": ["p", "q", "r"] * 21, "e": ["s"] * 62 + ["alone"]}
    features = plain(categorical=["c", "d", "e"]).fit(table)
    names = ["c=a", "c=b", "c=(other)", "d=p", "d=q", "d=r", "e=s"]
    assert features.get_feature_names_out().tolist() == names
    assert features.others_ == ["c"]  # a single rare value is too rare for a feature
    X = features.transform({"c": ["b", "x", "new", None], "d": ["r", "new", "p", "p"], "e": ["s", "alone", "s", "new"]})
    np.testing.assert_array_equal(X[:, :3], [[0, 1, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1]])
    np.testing.assert_array_equal(X[:, 3:], [[0, 0, 1, 1], [0, 0, 0, 0], [1, 0, 0, 1], [1, 0, 0, 0]])
    np.testing.assert_array_equal(features.fit_transform(table), features.transform(table))


def test_unknown_and_rare_categories_have_none():
    features = plain(categorical=["c"]).fit({"c": ["a", "b", "a"]})
    np.testing.assert_array_equal(features.transform({"c": ["new", "", "b"]}), [[0, 0], [0, 0], [0, 1]])
    values = ["a", "b"] * 30 + ["rare"]
    assert plain(categorical=["c"]).fit({"c": values}).categories_ == {"c": ["a", "b"]}
    assert plain(categorical=["c"], min_df=1).fit({"c": values}).categories_ == {"c": ["a", "b", "rare"]}


def test_many_categories_or_texts_are_sparse():
    values = [f"v{k}" for k in range(300)] * 2
    X = plain(numeric=["n"], categorical=["c"]).fit_transform({"c": values, "n": [1.0, 2.0] * 300})
    assert sparse.issparse(X)
    assert X.shape == (600, 301)
    X = plain(text="name", categorical=["more"]).fit_transform(TABLE)
    assert sparse.issparse(X)
    np.testing.assert_array_equal(X.toarray()[:, -4:].sum(axis=1), np.ones(4))


def test_texts_and_numbers_side_by_side():
    features = plain(text="name", numeric=["price"]).fit(TABLE)
    X = features.transform(TABLE)
    assert X.shape == (4, 7)
    assert X.dtype == np.float32
    assert features.get_feature_names_out().tolist() == ["apples", "blue", "green", "pears", "plums", "red", "price"]
    np.testing.assert_array_equal(X.toarray(), plain(text="name", numeric=["price"]).fit_transform(TABLE).toarray())


def test_kinds_are_blocks():
    options = {"text": "name", "numeric": ["price"], "categorical": ["more", "weight"], "curves": True}
    features = TableFeatures(**options, output="blocks")
    X = features.fit_transform(TABLE)
    assert isinstance(X, Blocks)
    assert X.names == ("words", "characters", "numbers", "curves", "categories")
    assert [sparse.issparse(matrix) for matrix in X.matrices] == [True, True, False, True, True]
    assert {matrix.dtype for matrix in X.matrices} == {np.dtype(np.float32)}
    whole = TableFeatures(**options).fit(TABLE)
    np.testing.assert_array_equal(sparse.hstack(X.matrices).toarray(), whole.transform(TABLE).toarray())
    again = features.transform(TABLE)
    assert again.names == X.names
    for name, matrix in X.items():
        np.testing.assert_allclose((again[name] - matrix).sum(), 0.0, atol=1e-6)
    assert features.get_feature_names_out().tolist() == whole.get_feature_names_out().tolist()
    assert len(features.get_feature_names_out()) == X.shape[1]


def test_kinds_without_features_are_no_blocks():
    table = {"c": [f"v{k}" for k in range(60)], "n": list(range(60))}
    features = plain(numeric=["n"], categorical=["c"], curves=False, output="blocks")
    assert features.fit_transform(table).n_features == {"numbers": 1}
    assert features.transform(table).n_features == {"numbers": 1}
    assert plain(output="blocks").fit_transform(NAMES).n_features == {"words": 6}


def test_blocks_have_variances_of_their_own():
    random = np.random.default_rng(0)
    table = {"name": random.choice(NAMES, 80).tolist(), "price": random.normal(size=80).tolist()}
    y = [f"{'apples' in name}{price > 0}" for name, price in zip(table["name"], table["price"], strict=True)]
    model = make_pipeline(plain(text="name", numeric=["price"], output="blocks"), KernelLogisticClassifier())
    model.fit(table, y)
    assert model[-1].blocks_in_ == {"words": 6, "numbers": 1, "curves": 63}
    assert model[-1].hyperparameters_.kernel["words"] != model[-1].hyperparameters_.kernel["numbers"]
    assert model.score(table, y) > 0.9


ROW = st.fixed_dictionaries(
    {
        "name": st.sampled_from([*NAMES, "", "red"]),
        "price": st.none() | st.floats(-1e9, 1e9),
        "more": st.none() | st.sampled_from(["x", "y", "z"]),
        "day": st.none() | st.datetimes().map(lambda moment: moment.isoformat()),
    }
)


@settings(max_examples=30, deadline=None)
@given(
    rows=st.lists(ROW, min_size=1, max_size=8), seed=st.integers(0, 99), output=st.sampled_from(["matrix", "blocks"])
)
def test_rows_do_not_depend_on_each_other(rows, seed, output):
    fitted = TableFeatures("name", ["price"], ["more"], dates=["day"], output=output, min_df=1)
    days = ["2024-05-31T10:00", "", "2023-01-02", "2020-12-31T23:00"]
    fitted.fit(TABLE | {"price": [1.0, None, 1e9, 2.0], "day": days})

    def transformed(chosen):
        X = fitted.transform({name: [row[name] for row in chosen] for name in ("name", "price", "more", "day")})
        return np.hstack([each.toarray() if sparse.issparse(each) else each for each in getattr(X, "matrices", [X])])

    X = transformed(rows)
    assert X.shape == (len(rows), len(fitted.get_feature_names_out()))
    assert np.isfinite(X).all()
    for k, row in enumerate(rows):
        np.testing.assert_array_equal(transformed([row])[0], X[k])
    order = np.random.default_rng(seed).permutation(len(rows))
    np.testing.assert_array_equal(transformed([rows[k] for k in order]), X[order])


def test_data_frames():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    expected = plain(text="name", numeric=["price"]).fit_transform(TABLE).toarray()
    for frame in (pandas.DataFrame(TABLE), polars.DataFrame(TABLE)):
        np.testing.assert_array_equal(plain(text="name", numeric=["price"]).fit_transform(frame).toarray(), expected)


def test_missing_texts_are_empty():
    features = plain(text="name").fit({"name": NAMES})
    X = features.transform({"name": ["red", None, float("nan"), ""]})
    assert X.getnnz(axis=1).tolist() == [1, 0, 0, 0]
    np.testing.assert_array_equal(features.transform(["red"]).toarray(), X[:1].toarray())


@pytest.mark.parametrize(
    ("options", "table", "message"),
    [
        ({"text": "nam"}, TABLE, "no column 'nam'; the table has 'name', 'more'"),
        ({"numeric": ["name"]}, TABLE, "row 0 of name is 'red apples', expected a number"),
        ({}, TABLE, "name the columns"),
        ({"words": None}, NAMES, "both None"),
        ({"characters": "all"}, NAMES, "must be a pair"),
        ({}, ["", ""], "cannot be learned from"),
        ({}, "red", "got a single one"),
        ({"text": ["name", "more"]}, NAMES, "expected a data frame or a mapping"),
        ({}, [["red"]], "row 0 of the input is a list"),
        ({}, [], "no rows"),
        ({"numeric": ["n"]}, {"n": []}, "no rows"),
        ({"numeric": ["n"]}, {"n": [1.0, float("inf")]}, "row 1 of n is inf"),
        ({"numeric": ["n"]}, {"n": [1e300]}, "row 0 of n is 1e\\+300"),
        ({"numeric": ["n", "m"]}, {"n": [1.0, 2.0], "m": [1.0]}, "the column 'm' has 1 rows, 'n' has 2"),
        ({"categorical": ["nam"]}, TABLE, "no column 'nam'"),
        ({"categorical": ["c"]}, {"c": [["a"]]}, "row 0 of c is a list"),
        ({"categorical": ["c"]}, {"c": [f"v{k}" for k in range(60)]}, "no value of 'c' occurs in 2 rows"),
        ({"text": "t", "numeric": ["n"]}, {"t": ["a", "b"], "n": [1.0]}, "different lengths"),
        (
            {"dates": ["day"]},
            {"day": ["2024-05-31", "31.05.2024"]},
            "row 1 of day is '31.05.2024', expected a date such",
        ),
        ({"dates": ["day", "on"]}, {"day": ["2024-05-31"], "on": []}, "the column 'on' has 0 rows, 'day' has 1"),
        ({"dates": ["day"], "numeric": ["n"]}, {"day": ["2024-05-31"], "n": [1.0, 2.0]}, "different lengths"),
        ({"output": "frame"}, NAMES, "output is 'frame', expected one of 'matrix', 'blocks'"),
    ],
)
def test_errors(options, table, message):
    with pytest.raises((TypeError, ValueError), match=f"TableFeatures: .*{message}"):
        plain(**options).fit(table)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"text": ["name", "more"], "numeric": ["price"]},
        {"numeric": ["price", "weight"]},
        {"categorical": ["more", "weight"]},
        {"text": "name", "numeric": ["price"], "categorical": ["more"]},
        {"text": "name", "numeric": ["price", "weight"], "categorical": ["more"], "output": "blocks"},
        {"text": "name", "numeric": ["price"], "curves": False, "output": "blocks"},
        {"numeric": ["some", "price"], "curves": True},
        {"numeric": ["some"], "dates": ["day", "on"], "categorical": ["more"], "output": "blocks"},
        {"numeric": ["some", "far"], "dates": ["on"], "categorical": ["rare"], "min_df": 2},
        {"dates": ["on"]},
        {"sequences": "name", "letters": (2, 3)},
        {"text": "more", "sequences": ["name"], "numeric": ["price"], "output": "blocks"},
    ],
)
def test_in_model_files(options, tmp_path):
    days = ["2024-05-31T10:00", "", "2023-01-02", "2020-12-31T23:00"]
    more = {"day": days, "on": days[::-1], "some": [1.0, None, 2.0, 5.0], "rare": ["a", "a", "b", "c"]}
    table = TABLE | more if options else NAMES
    if "min_df" in options:
        table = {name: 50 * column for name, column in table.items()}
        table |= {"far": [10.0**k for k in range(200)[::-1] if k < 20] + 180 * [0.5]}
        table["rare"][:4] = ["v", "w", "x", "y"]
    model = make_pipeline(TableFeatures(**options), KernelLogisticClassifier(Linear(), tuning=None))
    model.fit(table, ["a", "b", "a", "c"] * (50 if "min_df" in options else 1))
    taxolearn.save(model, tmp_path / "m.taxo", dtype="float64")
    loaded = taxolearn.load(tmp_path / "m.taxo")
    np.testing.assert_array_equal(loaded.predict_proba(table), model.predict_proba(table))
    assert loaded[0].get_params() == model[0].get_params()
    assert loaded[0].get_feature_names_out().tolist() == model[0].get_feature_names_out().tolist()


def wrong_cycles(fitted):
    fitted["dates"]["cycles"]["mapping"][0][1]["list"].append("moon")


def descending(fitted):
    """An array with numbers that do not increase."""
    return fitted["has_missing"]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda fitted: fitted.update(width={"list": []}), "its scale of numbers is wrong"),
        (lambda fitted: fitted.update(curves={"list": []}), "its curves of numbers are wrong"),
        (lambda fitted: fitted.update(curves={"list": [fitted["dates"]["mean"], {}]}), "it has a value of an"),
        (lambda fitted: fitted.update(curves={"list": [descending(fitted)]}), "its curves of numbers are wrong"),
        (lambda fitted: fitted["dates"].update(scale=fitted["width"]), "its scale of numbers is wrong"),
        (wrong_cycles, "its dates are wrong"),
        (lambda fitted: fitted.update(others={"list": ["price"]}), "its categories are wrong"),
        (lambda fitted: fitted["vectorizers"].pop(), "its sequences are wrong"),
    ],
)
def test_wrong_model_files(spoil, message, tmp_path):
    table = TABLE | {"day": ["2024-05-31", "2023-01-02", "", "2020-12-31"]}
    options = {"numeric": ["weight", "price"], "dates": ["day"], "categorical": ["more"], "sequences": "name"}
    model = make_pipeline(TableFeatures(**options), KernelLogisticClassifier(Linear(), tuning=None))
    taxolearn.save(model.fit(table, ["a", "b", "a", "c"]), tmp_path / "m.taxo")
    container = read_container(tmp_path / "m.taxo")
    spoil(container.content["steps"][0][1]["fitted"])
    write_container(tmp_path / "wrong.taxo", container.content, dict(container.arrays))
    with pytest.raises(ValueError, match=message):
        taxolearn.load(tmp_path / "wrong.taxo")
