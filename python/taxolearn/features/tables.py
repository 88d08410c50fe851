"""Features of tables: of texts, sequences, numbers, dates and categories, and embeddings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.utils.validation import check_is_fitted

from taxolearn.blocks import Blocks
from taxolearn.features.cells import CellError, Dates, as_dates, as_numbers
from taxolearn.features.embeddings import SentenceEmbeddings
from taxolearn.features.scales import Curves, NumberScale, cycle_features, cycle_names, cycles_of
from taxolearn.features.sequences import usual_lengths, without_blanks
from taxolearn.features.term_weights import WORD, TermWeights
from taxolearn.validation import check_choice, check_threads

__all__ = ["CellError", "TableFeatures"]

_SHORT = 300  # characters on average, up to which characters are looked at
_MANY = 50  # rows from which on a term must occur twice
_DENSE = 200  # columns of numbers, dates and categories up to which a table without texts becomes a dense array


class TableFeatures(TransformerMixin, BaseEstimator):
    """Features of texts, sequences, numbers, dates, categories and embeddings in a table.

    Texts become tf-idf weights of words and, where they are short, of sequences of characters, by scikit-learn's
    ``TfidfVectorizer`` with sublinear term frequencies; each kind has length 1 in every row. Texts can also be embedded
    by a sentence model, or the table may have columns with embeddings. DNA, proteins and codes, texts without blanks,
    become weights of their words of some letters.

    The mean of numbers is subtracted before they are divided by their standard deviation. A missing one counts as the
    mean; if some are missing in ``fit``, a feature that is 1 where they are says so. Columns with heavy tails (a
    kurtosis above 50), such as prices from cents to millions, are put on a logarithmic scale first, by arsinh.

    Dates become numbers, and sines and cosines of one and two turns in the year, the week and the day, as far as the
    dates of ``fit`` differ in these: a column without times has no day. The clock counts as written, in whatever zone.

    Every value of a category has a feature that is 1 in its rows; so has "missing", if that occurs in ``fit``. Rare
    values share one, if together they are not rare themselves, which unknown values then have as well. Else both have
    none.

    With texts or sequences the result is a CSR matrix. Numbers and dates alone, or with categories that have few
    values, are a dense array. ``output="blocks"`` keeps the kinds apart, so that a classifier can give each a variance
    of its own: "words", "characters" and "sequences" (sparse), "numbers" (dense) and "curves" of them (sparse), "dates"
    (dense), "categories" (sparse), "embedding" and "embedding_columns" (dense), those that there are.

    Parameters
    ----------
    text : str or sequence of str, optional
        Columns with texts; several are read as one text. None if the input is a plain list of texts, or if there are
        only numbers.
    numeric : sequence of str, optional
        Columns with numbers.
    categorical : sequence of str, optional
        Columns with one of some values, such as countries. Blanks around them do not count.
    words : pair of int, None or "auto", default="auto"
        Shortest and longest sequences of words; None for no words. "auto" takes (1, 2) for texts of up to 300
        characters on average, else (1, 1): pairs of words make the log loss of long texts worse, and their fits slow.
    characters : pair of int, None or "auto", default="auto"
        Shortest and longest sequences of characters within words; None for none. "auto" takes (3, 5) for texts of up to
        300 characters on average, else None.
    min_df : int or "auto", default="auto"
        In how many rows a sequence, or a value of a category, must occur not to be rare; "auto" means 2, or 1 if there
        are fewer than 50 rows.
    max_features : int, optional
        How many sequences of each kind to keep, the most frequent first.
    n_threads : int, optional
        Threads of ``transform``; None for as many as the machine grants.
    output : {"matrix", "blocks"}, default="matrix"
        One matrix, or ``taxolearn.Blocks``. With embeddings blocks are better, and faster.
    embed : str or sequence of str, optional
        Columns with texts for the sentence model; several are read as one text. None for those of ``text``.
    embedding_model : str, path, callable or SentenceEmbeddings, optional
        The sentence model, as for ``SentenceEmbeddings``; None for no embeddings.
    embedding_columns : sequence of str, optional
        Columns with the numbers of an embedding. They are divided by one number, so that rows have about length 1; a
        missing one counts as 0.
    dates : sequence of str, optional
        Columns with dates: texts in ISO 8601 such as 2024-05-31 or 2024-05-31T14:30:00+02:00, ``datetime``, ``date`` or
        ``datetime64``.
    sequences : str or sequence of str, optional
        Columns with sequences of letters, such as DNA or proteins; blanks, and upper and lower case, do not matter.
    letters : pair of int or "auto", default="auto"
        Shortest and longest words of letters in sequences. "auto" takes one length: the longest of which there are up
        to 200,000 words of letters that are equally frequent. That is 8 for DNA and 4 for proteins.
    curves : bool or "auto", default="auto"
        Whether linear models see piecewise linear functions of each number besides the number itself, in the block
        "curves" (``features.scales.Curves``). "auto": in blocks, where numbers stand beside other kinds. Tables of
        numbers alone are better left to kernels.

    Attributes
    ----------
    vectorizers_ : dict of TfidfVectorizer
        By kind: "words", "characters" and "sequences".
    numbers_ : NumberScale or None
        How numbers become features.
    curves_ : Curves or None
        The curves of numbers.
    dates_ : NumberScale or None
        The same for the seconds of dates.
    cycles_ : dict of str to list of str
        Cycles by column of dates: "year", "week", "day".
    categories_ : dict of str to list of str
        Values of the categories by column, sorted; "" is a missing one.
    others_ : list of str
        Columns of categories in which rare and unknown values have a feature.
    embedder_ : SentenceEmbeddings or None
        The fitted sentence model.
    embedding_scale_ : float
        What ``embedding_columns`` are divided by.

    Examples
    --------
    >>> from taxolearn.features import TableFeatures
    >>> features = TableFeatures(words=(1, 1), characters=None).fit(["red apples", "green pears", "red pears"])
    >>> features.get_feature_names_out().tolist()
    ['apples', 'green', 'pears', 'red']
    >>> table = {"name": ["red apples", "green pears"], "price": [1.0, 2.0]}
    >>> TableFeatures(text="name", numeric=["price"], words=(1, 1), characters=None).fit_transform(table).shape
    (2, 5)
    >>> fruits = {"colour": ["red", "green", "red"], "price": [1.0, 2.0, 4.0]}
    >>> TableFeatures(numeric=["price"], categorical=["colour"]).fit(fruits).get_feature_names_out().tolist()
    ['price', 'colour=green', 'colour=red']
    >>> TableFeatures(numeric=["price"], categorical=["colour"], output="blocks").fit_transform(fruits)
    Blocks of 3 rows: 'numbers' (1 features), 'categories' (2 features)
    """

    def __init__(
        self,
        text: str | Sequence[str] | None = None,
        numeric: Sequence[str] | None = None,
        categorical: Sequence[str] | None = None,
        words: tuple[int, int] | str | None = "auto",
        characters: tuple[int, int] | str | None = "auto",
        min_df: int | str = "auto",
        max_features: int | None = None,
        n_threads: int | None = None,
        output: str = "matrix",
        embed: str | Sequence[str] | None = None,
        embedding_model: Any = None,
        embedding_columns: Sequence[str] | None = None,
        dates: Sequence[str] | None = None,
        sequences: str | Sequence[str] | None = None,
        letters: tuple[int, int] | str = "auto",
        curves: bool | str = "auto",
    ) -> None:
        self.text = text
        self.numeric = numeric
        self.categorical = categorical
        self.words = words
        self.characters = characters
        self.min_df = min_df
        self.max_features = max_features
        self.n_threads = n_threads
        self.output = output
        self.embed = embed
        self.embedding_model = embedding_model
        self.embedding_columns = embedding_columns
        self.dates = dates
        self.sequences = sequences
        self.letters = letters
        self.curves = curves

    def fit(self, X: Any, y: Any = None) -> TableFeatures:
        """Learn the vocabulary and the scale.

        Parameters
        ----------
        X : list of str, mapping from names to columns, or data frame
            The table.
        y : ignored
        """
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None, **_: Any) -> Any:
        """Learn from a table, and return its features."""
        check_choice("TableFeatures: output", self.output, ("matrix", "blocks"))
        texts, sequences = self._texts(X), self._sequences(X)
        numbers = self._numbers(X)
        dates = self._dates(X)
        categories = self._categories(X)
        embedded = self._texts_to_embed(X, texts)
        vectors = self._vectors(X)
        clocks = [each.clock for each in dates.values()]
        columns = (texts, sequences, numbers, *clocks, *categories.values(), embedded, vectors)
        given = [part for part in columns if part is not None]
        if not given:
            raise ValueError(
                "TableFeatures: name the columns with texts, sequences, numbers, dates or categories, by text, "
                "sequences, numeric, dates or categorical, or those with embeddings"
            )
        if len(given[0]) == 0:
            raise ValueError("TableFeatures: the table has no rows to learn from")
        self.vectorizers_ = self._make_vectorizers(texts, sequences)
        self.__dict__.pop("_weights", None)
        parts = {}
        for kind, vectorizer in self.vectorizers_.items():
            what, read = ("sequences", sequences) if kind == "sequences" else ("texts", texts)
            try:
                parts[kind] = vectorizer.fit_transform(read)
            except ValueError as error:
                raise ValueError(f"TableFeatures: the {what} cannot be learned from: {error}") from None
        self.numbers_ = None if numbers is None else NumberScale.of(numbers)
        self.curves_ = Curves.of(numbers) if numbers is not None and self._has_curves() else None
        self.dates_ = NumberScale.of(_seconds(dates)) if dates else None
        self.cycles_ = {name: cycles_of(column) for name, column in dates.items()}
        parts |= self._scaled(numbers, dates)
        least = self._least(len(given[0]))
        self.categories_ = {name: _frequent(values, least) for name, values in categories.items()}
        self.others_ = [name for name, values in categories.items() if self._has_others(values, name, least)]
        parts |= self._indicators(categories)
        self.embedder_ = None
        if embedded is not None:
            model = self.embedding_model
            own = clone(model) if isinstance(model, SentenceEmbeddings) else SentenceEmbeddings(model)
            self.embedder_ = own.fit(embedded)
        self.embedding_scale_ = 1.0
        if vectors is not None:
            self.embedding_scale_ = float(np.sqrt(np.mean((vectors**2).sum(axis=1)))) or 1.0
        parts |= self._embeddings(embedded, vectors)
        if sum(part.shape[1] for part in parts.values()) == 0:
            raise ValueError(
                f"TableFeatures: no value of {', '.join(map(repr, categories))} occurs in {least} rows, so there are "
                "no features"
            )
        return self._joined(parts)

    def transform(self, X: Any) -> Any:
        """Compute the features of a table."""
        check_is_fitted(self, "vectorizers_")
        parts = {}
        has_texts = set(self.vectorizers_) - {"sequences"} or (self.embedder_ is not None and self.embed is None)
        texts, sequences = self._texts(X) if has_texts else None, self._sequences(X)
        if self.vectorizers_:
            threads = check_threads(self.n_threads)
            for kind, weights in self._term_weights().items():
                parts[kind] = weights.transform((sequences if kind == "sequences" else texts) or [], threads)
        parts |= self._scaled(self._numbers(X), self._dates(X))
        parts |= self._indicators(self._categories(X))
        embedded = None if self.embedder_ is None else self._texts_to_embed(X, texts)
        return self._joined(parts | self._embeddings(embedded, self._vectors(X)))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Name the features.

        They are words, sequences of characters in quotes, and ``sequence 'acgtacgt'``; columns of numbers and then
        ``column=missing``; the same of dates, and then ``column sin(year)``, ``column cos(2 year)`` and the like;
        ``column=value``, where rare and unknown values are the last of their column, ``column=(other)``; ``embedding0``
        and so on of a sentence model.
        """
        check_is_fitted(self, "vectorizers_")
        names: list[str] = []
        for kind, vectorizer in self.vectorizers_.items():
            terms = vectorizer.get_feature_names_out().tolist()
            before = "sequence " if kind == "sequences" else ""
            names += terms if kind == "words" else [f"{before}'{term}'" for term in terms]
        if self.numbers_ is not None:
            names += self.numbers_.names(self.numeric or ())
        if self.curves_ is not None:
            names += self.curves_.names(self.numeric or ())
        if self.dates_ is not None:
            names += self.dates_.names(list(self.cycles_))
        names += [each for name, cycles in self.cycles_.items() for each in cycle_names(name, cycles)]
        for name, values in self.categories_.items():
            names += [f"{name}={value}" for value in values]
            names += [f"{name}=(other)"] if name in self.others_ else []
        if self.embedder_ is not None:
            names += self.embedder_.get_feature_names_out().tolist()
        names += self.embedding_columns or ()
        return np.array(names, dtype=object)

    def _term_weights(self) -> dict[str, TermWeights]:
        """Term weights of the vectorizers; made when they are needed, and not copied along with them."""
        if "_weights" not in self.__dict__:
            self._weights = {kind: TermWeights(vectorizer) for kind, vectorizer in self.vectorizers_.items()}
        return self._weights

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_weights"}

    def _make_vectorizers(self, texts: list[str] | None, sequences: list[str] | None) -> dict[str, TfidfVectorizer]:
        lengths = {} if texts is None else self._lengths_in_texts(texts)
        if sequences is not None:
            lengths["sequences"] = usual_lengths(sequences) if self.letters == "auto" else self.letters
            if self.letters is None or isinstance(lengths["sequences"], str):
                raise ValueError(f'TableFeatures: letters must be a pair or "auto", got {self.letters!r}')
        common = {
            "min_df": self._least(len(texts or sequences or ())),
            "max_features": self.max_features,
            "sublinear_tf": True,
            "dtype": np.float32,
        }
        out = {}
        for kind, pair in lengths.items():
            unit = {"token_pattern": WORD} if kind == "words" else {"analyzer": "char_wb"}
            out[kind] = TfidfVectorizer(ngram_range=tuple(pair), **unit, **common)
        return out

    def _lengths_in_texts(self, texts: list[str]) -> dict[str, Any]:
        """Shortest and longest sequences of words and of characters, as far as these are wanted."""
        is_short = sum(map(len, texts)) <= _SHORT * len(texts)
        words, characters = self.words, self.characters
        if words == "auto":
            words = (1, 2) if is_short else (1, 1)
        if characters == "auto":
            characters = (3, 5) if is_short else None
        out = {name: pair for name, pair in (("words", words), ("characters", characters)) if pair is not None}
        for name, pair in out.items():
            if isinstance(pair, str):
                raise ValueError(f'TableFeatures: {name} must be a pair, None or "auto", got {pair!r}')
        if not out and (self.embedding_model is None or self.embed is not None):
            raise ValueError("TableFeatures: words and characters are both None, so texts would have no features")
        return out

    def _texts(self, X: Any) -> list[str] | None:
        """The text of every row; None if there is none."""
        if self.text is None:
            others = (self.sequences, self.numeric, self.dates, self.categorical, self.embed, self.embedding_columns)
            if any(others):
                return None
            if isinstance(X, Mapping) or hasattr(X, "columns"):
                return None
            return [_as_text(value, "the input", k) for k, value in enumerate(_listed(X))]
        return _read_texts(X, self.text)

    def _sequences(self, X: Any) -> list[str] | None:
        """The sequences of every row; None if there are none."""
        if not self.sequences:
            return None
        names = [self.sequences] if isinstance(self.sequences, str) else list(self.sequences)
        columns = [_read_texts(X, name) for name in names]
        _check_lengths(names, columns)
        return without_blanks(columns)

    def _texts_to_embed(self, X: Any, texts: list[str] | None) -> list[str] | None:
        """The texts for the sentence model, where there is one: those of ``text``, unless others are named."""
        if self.embedding_model is None:
            if self.embed is not None:
                raise ValueError("TableFeatures: embed needs embedding_model, the name or path of a sentence model")
            return None
        if self.embed is not None:
            return _read_texts(X, self.embed)
        if texts is None:
            raise ValueError("TableFeatures: embedding_model needs the columns with texts, by embed or text")
        return texts

    def _vectors(self, X: Any) -> NDArray[np.float32] | None:
        """Embeddings that are in the table."""
        if not self.embedding_columns:
            return None
        columns = [as_numbers(_column(X, name), name) for name in self.embedding_columns]
        _check_lengths(self.embedding_columns, columns)
        return np.nan_to_num(np.column_stack(columns).astype(np.float32))

    def _embeddings(self, texts: list[str] | None, vectors: NDArray[np.float32] | None) -> dict[str, Any]:
        parts = {}
        if self.embedder_ is not None:
            if self.n_threads is not None:
                self.embedder_.set_params(n_threads=self.n_threads)
            parts["embedding"] = self.embedder_.transform(texts)
        if vectors is not None:
            parts["embedding_columns"] = vectors / np.float32(self.embedding_scale_)
        return parts

    def _numbers(self, X: Any) -> NDArray[np.float64] | None:
        if not self.numeric:
            return None
        columns = [as_numbers(_column(X, name), name) for name in self.numeric]
        _check_lengths(self.numeric, columns)
        return np.column_stack(columns)

    def _dates(self, X: Any) -> dict[str, Dates]:
        columns = {name: as_dates(_column(X, name), name) for name in self.dates or ()}
        _check_lengths(list(columns), [column.clock for column in columns.values()])
        return columns

    def _scaled(self, numbers: NDArray[np.float64] | None, dates: Mapping[str, Dates]) -> dict[str, Any]:
        """The parts "numbers", "curves" and "dates", if there are any."""
        parts = {}
        if numbers is not None:
            if self.numbers_ is None or numbers.shape[1] != len(self.numbers_.mean):
                raise ValueError("TableFeatures: other numeric columns than in fit")
            parts["numbers"] = self.numbers_.features(numbers)
            if self.curves_ is not None:
                parts["curves"] = self.curves_.features(numbers)
        if dates:
            if self.dates_ is None or list(dates) != list(self.cycles_):
                raise ValueError("TableFeatures: other columns of dates than in fit")
            cycles = [cycle_features(dates[name], cycles) for name, cycles in self.cycles_.items()]
            parts["dates"] = np.hstack([self.dates_.features(_seconds(dates)), *cycles])
        return parts

    def _has_curves(self) -> bool:
        if self.curves != "auto" and not isinstance(self.curves, (bool, np.bool_)):
            raise ValueError(f'TableFeatures: curves must be True, False or "auto", got {self.curves!r}')
        others = (self.text, self.sequences, self.categorical, self.embed, self.embedding_columns)
        return self.output == "blocks" and any(others) if self.curves == "auto" else bool(self.curves)

    def _least(self, rows: int) -> Any:
        """In how many rows something must occur."""
        return (2 if rows >= _MANY else 1) if self.min_df == "auto" else self.min_df

    def _categories(self, X: Any) -> dict[str, list[str]]:
        columns = {name: _as_categories(_column(X, name), name) for name in self.categorical or ()}
        _check_lengths(list(columns), list(columns.values()))
        return columns

    def _has_others(self, values: list[str], name: str, least: Any) -> bool:
        """Whether rare values get a feature: not if there are hardly any, nor if there are no others."""
        known = set(self.categories_[name])
        return bool(known) and sum(value not in known for value in values) >= max(least, 1)

    def _indicators(self, columns: Mapping[str, list[str]]) -> dict[str, Any]:
        """The part "categories", if there are any: a 1 in the place of each row's value of each column."""
        if not columns:
            return {}
        out = []
        for name, values in columns.items():
            place = {value: k for k, value in enumerate(self.categories_[name])}
            width, other = len(place), -1
            if name in self.others_:
                width, other = width + 1, width
            places = np.array([place.get(value, other) for value in values], dtype=np.int64)
            rows = np.flatnonzero(places >= 0)
            ones = np.ones(len(rows), dtype=np.float32)
            out.append(sp.csr_matrix((ones, (rows, places[rows])), shape=(len(values), width)))
        return {"categories": sp.hstack(out, format="csr") if len(out) > 1 else out[0]}

    def _joined(self, parts: dict[str, Any]) -> Any:
        """The output. Blocks without features are left out."""
        if len({part.shape[0] for part in parts.values()}) > 1:
            raise ValueError("TableFeatures: the columns of texts, numbers and the like have different lengths")
        if self.output == "blocks":
            return Blocks({name: part for name, part in parts.items() if part.shape[1] > 0})
        matrices = list(parts.values())
        width = sum(part.shape[1] for name, part in parts.items() if not name.startswith("embedding"))
        if not self.vectorizers_ and (width <= _DENSE or not self.categorical):
            return np.hstack([part.toarray() if sp.issparse(part) else part for part in matrices])
        return sp.hstack(matrices, format="csr") if len(matrices) > 1 else matrices[0].tocsr()


def _read_texts(X: Any, columns: str | Sequence[str]) -> list[str]:
    """The text of every row; a plain list of texts will do for one column."""
    names = [columns] if isinstance(columns, str) else list(columns)
    if len(names) == 1 and not isinstance(X, Mapping) and not hasattr(X, "columns"):
        return [_as_text(value, names[0], k) for k, value in enumerate(_listed(X))]
    found = [_column(X, name) for name in names]
    _check_lengths(names, found)
    texts = [[_as_text(value, name, k) for k, value in enumerate(c)] for name, c in zip(names, found, strict=True)]
    return texts[0] if len(texts) == 1 else ["\n".join(row) for row in zip(*texts, strict=True)]


def _seconds(dates: Mapping[str, Dates]) -> NDArray[np.float64]:
    return np.column_stack([column.seconds for column in dates.values()])


def _check_lengths(names: Sequence[str], columns: Sequence[Any]) -> None:
    for name, column in zip(names, columns, strict=True):
        if len(column) != len(columns[0]):
            raise ValueError(
                f"TableFeatures: the column {name!r} has {len(column)} rows, {names[0]!r} has {len(columns[0])}"
            )


def _listed(column: Any) -> list[Any]:
    if isinstance(column, (str, bytes)):
        raise TypeError("TableFeatures: expected a list of texts, got a single one; put it in a list")
    # As a list, some dates of NumPy would be plain numbers.
    return list(column.tolist() if isinstance(column, np.ndarray) and column.dtype.kind != "M" else column)


def _column(X: Any, name: str) -> list[Any]:
    if not isinstance(X, Mapping) and not hasattr(X, "columns"):
        raise TypeError(
            f"TableFeatures: expected a data frame or a mapping with the column {name!r}, got {type(X).__name__}"
        )
    known = list(X) if isinstance(X, Mapping) else list(X.columns)
    if name not in known:
        shown = ", ".join(map(repr, known[:10])) + (", ..." if len(known) > 10 else "")
        raise ValueError(f"TableFeatures: there is no column {name!r}; the table has {shown}")
    return _listed(X[name])


def _as_text(value: Any, name: str, row: int) -> str:
    """Return the value if it is a text; nothing and NaN are empty texts."""
    if isinstance(value, str):
        return value
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    if isinstance(value, (int, float, np.number)):
        return str(value)
    raise CellError(row, name, f"is a {type(value).__name__}, expected a text")


def _as_categories(column: list[Any], name: str) -> list[str]:
    """The column as texts without blanks around them; what is missing is empty. 3.0 is the same as 3."""
    whole = (int(value) if isinstance(value, float) and value.is_integer() else value for value in column)
    return [_as_text(value, name, row).strip() for row, value in enumerate(whole)]


def _frequent(values: list[str], least: Any) -> list[str]:
    """The values that occur so often, sorted."""
    return sorted(value for value, count in Counter(values).items() if count >= least)
