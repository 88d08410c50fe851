"""The linear operators against dense NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

testing = pytest.importorskip(
    "taxolearn_testing", reason="there is no taxolearn_testing; cmake -DTAXOLEARN_BUILD_TEST_MODULE=ON builds it"
)


VARIANCE = 0.7
PRECISIONS = {np.float32: testing.LinearSingle, np.float64: testing.LinearDouble}
ALGORITHMS = [("sparse", "sparse"), ("sparse", "stored"), ("dense", "dense"), ("dense", "stored")]


def tolerance(*dtypes):
    """Relative to the largest element: rounding of the least precise type involved."""
    return 2e-5 if np.float32 in dtypes else 1e-12


def assert_close(actual, expected, *dtypes):
    assert actual.shape == expected.shape
    scale = max(np.abs(expected).max(initial=0.0), 1e-30)
    assert np.abs(actual - expected).max(initial=0.0) <= tolerance(*dtypes) * scale


def random_rows(n, d, *, density=0.3, seed=0, values=np.float64, index=np.int32):
    """A CSR matrix with an empty row, an empty column and a column of one entry, indices sorted."""
    generator = np.random.default_rng(seed)
    dense = generator.standard_normal((n, d)) * (generator.random((n, d)) < density)
    dense[n // 2] = 0
    dense[:, d // 3] = 0
    dense[:, d // 2] = 0
    dense[0, d // 2] = 1.5
    X = sp.csr_array(dense.astype(values))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    return X


def as_kind(X, kind):
    return X if kind == "sparse" else X.toarray()


def dense_of(X):
    return (X.toarray() if sp.issparse(X) else X).astype(np.float64)


def block(n, m, dtype, seed=1):
    return np.random.default_rng(seed).standard_normal((n, m)).astype(dtype)


def freeze(X):
    for array in (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,):
        array.flags.writeable = False
    return X


@pytest.fixture(params=ALGORITHMS, ids=lambda pair: f"{pair[0]}-{pair[1]}")
def kind_and_algorithm(request):
    return request.param


@pytest.fixture(params=PRECISIONS, ids=lambda dtype: dtype.__name__)
def dtype(request):
    """Precision of the products."""
    return request.param


@pytest.mark.parametrize("values", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("m", [1, 7, 16, 33, 130])
def test_apply_is_the_dense_product(kind_and_algorithm, dtype, values, index, m):
    kind, algorithm = kind_and_algorithm
    X = as_kind(random_rows(37, 23, values=values, index=index), kind)
    S = block(37, m, dtype)
    operator = PRECISIONS[dtype](X, VARIANCE, algorithm)
    assert operator.algorithm == algorithm
    assert operator.rows == 37
    out = operator.apply(S)
    assert out.dtype == dtype
    assert_close(out, VARIANCE * dense_of(X) @ dense_of(X).T @ S, values, dtype)


def test_shift_is_added_to_every_row(kind_and_algorithm, dtype):
    kind, algorithm = kind_and_algorithm
    X = as_kind(random_rows(37, 23), kind)
    S, shift = block(37, 19, dtype), block(1, 19, dtype, seed=2)[0]
    expected = VARIANCE * dense_of(X) @ dense_of(X).T @ S + shift
    assert_close(PRECISIONS[dtype](X, VARIANCE, algorithm).apply(S, shift), expected, dtype)


@pytest.mark.parametrize("new_kind", ["sparse", "dense"])
@pytest.mark.parametrize("new_values", [np.float32, np.float64])
def test_apply_cross_is_the_dense_product(kind_and_algorithm, dtype, new_kind, new_values):
    kind, algorithm = kind_and_algorithm
    X = as_kind(random_rows(37, 23), kind)
    X_new = as_kind(random_rows(300, 23, seed=5, values=new_values, index=np.int64), new_kind)
    S = block(37, 9, dtype)
    out = PRECISIONS[dtype](X, VARIANCE, algorithm).apply_cross(X_new, S)
    assert_close(out, VARIANCE * dense_of(X_new) @ dense_of(X).T @ S, new_values, dtype)


def test_apply_cross_with_the_inputs_themselves_is_apply(kind_and_algorithm):
    kind, algorithm = kind_and_algorithm
    X, S = as_kind(random_rows(37, 23), kind), block(37, 9, np.float64)
    operator = testing.LinearDouble(X, VARIANCE, algorithm)
    assert_close(operator.apply_cross(X, S), operator.apply(S), np.float64)


def test_diag_is_the_diagonal(kind_and_algorithm, dtype):
    kind, algorithm = kind_and_algorithm
    X = as_kind(random_rows(37, 23), kind)
    expected = VARIANCE * (dense_of(X) ** 2).sum(axis=1)
    assert_close(PRECISIONS[dtype](X, VARIANCE, algorithm).diag(), expected, np.float64)


def test_bilinear_grad_is_the_derivative_by_log_variance(kind_and_algorithm, dtype):
    kind, algorithm = kind_and_algorithm
    X = as_kind(random_rows(37, 23), kind)
    E, F = block(37, 6, dtype, seed=3), block(37, 6, dtype, seed=4)
    operator = PRECISIONS[dtype](X, VARIANCE, algorithm)
    assert operator.parameters == 1

    def trace(log_variance):
        M = np.exp(log_variance) * dense_of(X) @ dense_of(X).T
        return (E.astype(float) * (M @ F.astype(float))).sum()

    h = 1e-4
    by_differences = (trace(np.log(VARIANCE) + h) - trace(np.log(VARIANCE) - h)) / (2 * h)
    gradient = operator.bilinear_grad(E, F)
    assert gradient.shape == (1,)
    np.testing.assert_allclose(gradient[0], by_differences, rtol=1e-4 if dtype == np.float32 else 1e-7)


def test_a_subset_is_the_operator_of_these_rows(kind_and_algorithm, dtype):
    kind, algorithm = kind_and_algorithm
    X = as_kind(random_rows(37, 23), kind)
    whole = PRECISIONS[dtype](X, VARIANCE, algorithm)
    for rows in ([30, 2, 18, 5], list(range(36, -1, -1)), [7]):  # 18 is the empty row
        operator = whole.subset(rows)
        part = dense_of(X)[rows]
        S, shift = block(len(rows), 9, dtype), block(1, 9, dtype, seed=2)[0]
        assert operator.rows == len(rows)
        assert_close(operator.apply(S, shift), VARIANCE * part @ part.T @ S + shift, dtype)
        assert_close(operator.diag(), VARIANCE * (part**2).sum(axis=1), np.float64)
        assert_close(operator.apply_cross(X, S), VARIANCE * dense_of(X) @ part.T @ S, dtype)
        expected = (S.astype(float) * (VARIANCE * part @ part.T @ S)).sum()
        np.testing.assert_allclose(operator.bilinear_grad(S, S)[0], expected, rtol=1e-4)
        assert whole.rows == 37


@pytest.mark.parametrize("rows", [[], [-1], [37], [3, 3]])
def test_subset_refuses_bad_rows(kind_and_algorithm, rows):
    kind, algorithm = kind_and_algorithm
    operator = testing.LinearDouble(as_kind(random_rows(37, 23), kind), VARIANCE, algorithm)
    with pytest.raises(ValueError, match="rows"):
        operator.subset(rows)


def test_automatic_choice_depends_on_the_shape():
    assert testing.LinearDouble(random_rows(1000, 50, density=0.1), 1.0).algorithm == "sparse"
    assert testing.LinearDouble(random_rows(20, 50, density=0.1), 1.0).algorithm == "stored"
    assert testing.LinearDouble(np.ones((1000, 5)), 1.0).algorithm == "dense"
    assert testing.LinearDouble(np.ones((9, 5)), 1.0).algorithm == "stored"


def test_threads_do_not_change_a_bit(kind_and_algorithm, dtype):
    kind, algorithm = kind_and_algorithm
    n = 700 if algorithm == "stored" else 5000
    X = as_kind(random_rows(n, 60, density=0.2), kind)
    S, F, shift = block(n, 21, dtype), block(n, 21, dtype, seed=3), block(1, 21, dtype, seed=2)[0]
    one, two = (PRECISIONS[dtype](X, VARIANCE, algorithm, n_threads) for n_threads in (1, 2))
    np.testing.assert_array_equal(one.apply(S, shift), two.apply(S, shift))
    np.testing.assert_array_equal(one.apply_cross(X, S), two.apply_cross(X, S))
    np.testing.assert_array_equal(one.bilinear_grad(S, F), two.bilinear_grad(S, F))


def test_read_only_arrays_are_read(kind_and_algorithm, dtype):
    kind, algorithm = kind_and_algorithm
    X = freeze(as_kind(random_rows(37, 23), kind))
    S, shift = freeze(block(37, 9, dtype)), freeze(block(1, 9, dtype, seed=2))[0]
    expected = VARIANCE * dense_of(X) @ dense_of(X).T @ S + shift
    operator = PRECISIONS[dtype](X, VARIANCE, algorithm)
    assert_close(operator.apply(S, shift), expected, dtype)
    assert_close(operator.apply_cross(X, S), expected - shift, dtype)


def test_rows_of_a_larger_array_are_read_in_place(dtype):
    wide = block(37, 50, np.float64)
    X, S = wide[::2, 10:33], block(19, 40, dtype)[:, 3:12]
    assert_close(PRECISIONS[dtype](X, VARIANCE, "dense").apply(S), VARIANCE * X @ X.T @ S, dtype)


def test_inputs_of_another_order_are_refused(dtype):
    X, S = block(37, 23, dtype), block(37, 9, dtype)
    with pytest.raises(ValueError, match="X must be C-ordered"):
        PRECISIONS[dtype](np.asfortranarray(X), VARIANCE)
    with pytest.raises(ValueError, match="S must be C-ordered"):
        PRECISIONS[dtype](X, VARIANCE).apply(np.asfortranarray(S))


def test_blocks_of_another_precision_or_shape_are_refused(kind_and_algorithm):
    kind, algorithm = kind_and_algorithm
    operator = testing.LinearDouble(as_kind(random_rows(37, 23), kind), VARIANCE, algorithm)
    with pytest.raises(ValueError, match="S must be a matrix of float64"):
        operator.apply(block(37, 9, np.float32))
    with pytest.raises(ValueError, match="S "):
        operator.apply(block(36, 9, np.float64))
    with pytest.raises(ValueError, match="S must be a matrix"):
        operator.apply(np.ones(37))
    with pytest.raises(ValueError, match="shift has 8 elements, expected 9"):
        operator.apply(block(37, 9, np.float64), np.ones(8))
    with pytest.raises(ValueError, match="features"):
        operator.apply_cross(np.ones((2, 22)), block(37, 9, np.float64))
    with pytest.raises(ValueError, match="F "):
        operator.bilinear_grad(block(37, 9, np.float64), block(37, 8, np.float64))


@pytest.mark.parametrize("variance", [0.0, -1.0, np.nan, np.inf])
def test_variance_must_be_positive(variance):
    with pytest.raises(ValueError, match="variance must be positive and finite"):
        testing.LinearDouble(np.ones((3, 2)), variance)


def test_algorithm_must_fit_the_inputs():
    with pytest.raises(ValueError, match='algorithm "sparse" needs sparse inputs'):
        testing.LinearDouble(np.ones((3, 2)), 1.0, "sparse")
    with pytest.raises(ValueError, match='algorithm "dense" needs dense inputs'):
        testing.LinearDouble(random_rows(9, 9), 1.0, "dense")
    with pytest.raises(ValueError, match='algorithm is "fast", expected auto, sparse, dense, blocks or stored'):
        testing.LinearDouble(np.ones((3, 2)), 1.0, "fast")


def test_values_of_another_type_are_refused():
    X = random_rows(9, 9)
    X.data = X.data.astype(np.int64)
    with pytest.raises(ValueError, match="X: values must be float32 or float64"):
        testing.LinearDouble(X, 1.0)
    X = random_rows(9, 9)
    X.indptr = X.indptr.astype(np.int64)
    with pytest.raises(ValueError, match="both index arrays int32 or int64, got float64, int32 and int64"):
        testing.LinearDouble(X, 1.0)
    with pytest.raises(ValueError, match="X must be an array or a CSR matrix"):
        testing.LinearDouble([[1.0]], 1.0)


@st.composite
def sparse_matrices(draw):
    """Sorted CSR matrices with empty rows and columns, explicit zeros and duplicate entries."""
    n, d = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    values = draw(st.sampled_from([np.float32, np.float64]))
    index = draw(st.sampled_from([np.int32, np.int64]))
    rows = [sorted(draw(st.lists(st.integers(0, d - 1), max_size=8))) for _ in range(n)]
    size = sum(map(len, rows))
    data = draw(st.lists(st.floats(-8, 8, width=16), min_size=size, max_size=size))
    indices = np.array([j for row in rows for j in row], dtype=index)
    indptr = np.cumsum([0, *map(len, rows)]).astype(index)
    X = sp.csr_array((n, d), dtype=values)
    X.data, X.indices, X.indptr = np.array(data, dtype=values), indices, indptr
    return X


def summed(X):
    """Dense form, written without scipy so that duplicates are seen to add up."""
    dense = np.zeros(X.shape)
    for i in range(X.shape[0]):
        for k in range(X.indptr[i], X.indptr[i + 1]):
            dense[i, X.indices[k]] += X.data[k]
    return dense


@settings(max_examples=60, deadline=None)
@given(
    X=sparse_matrices(),
    algorithm=st.sampled_from(["auto", "sparse", "stored"]),
    dtype=st.sampled_from(list(PRECISIONS)),
    m=st.integers(1, 20),
    n_threads=st.integers(1, 2),
    data=st.data(),
)
def test_any_sparse_matrix_acts_like_its_dense_self(X, algorithm, dtype, m, n_threads, data):
    n = X.shape[0]
    D = summed(X)
    M = VARIANCE * D @ D.T
    S, F = block(n, m, dtype), block(n, m, dtype, seed=3)
    operator = PRECISIONS[dtype](X, VARIANCE, algorithm, n_threads)
    scale = 1e-5 if dtype == np.float32 else 1e-12
    bound = scale * VARIANCE * (np.abs(D) @ np.abs(D).T).max() * np.abs(S).sum() + 1e-30
    assert np.abs(operator.apply(S) - M @ S).max() <= bound
    assert np.abs(operator.apply_cross(X, S) - M @ S).max() <= bound
    np.testing.assert_allclose(operator.diag(), np.diag(M), rtol=1e-10, atol=1e-12)
    assert abs(operator.bilinear_grad(F, S)[0] - (F * (M @ S)).sum()) <= bound * np.abs(F).sum()
    rows = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=n, unique=True))
    some = operator.subset(rows)
    part = np.ascontiguousarray(S[rows])
    assert np.abs(some.apply(part) - M[np.ix_(rows, rows)] @ part).max() <= bound
