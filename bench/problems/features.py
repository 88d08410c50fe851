"""Features that users of other libraries would take for a whole job."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler

from bench.problems.catalogue import CATEGORIES, DATES, NUMBERS, TITLE
from bench.problems.jobs import Job
from bench.problems.label_jobs import LabelJob

SHORT = 300  # characters on average, below which characters are looked at as well


def is_long_text(job: Job | LabelJob) -> bool:
    """Whether the inputs are texts that are long enough for words alone."""
    return job.is_text and sum(map(len, job.X)) >= SHORT * len(job.X)


def usual_features(job: Job | LabelJob, word_pairs: bool = False) -> Any:
    """An unfitted transformer: tf-idf of texts and counts, standardized columns; what is weighted already stays.

    Short texts have words, pairs of words, and three to five characters within words; long ones have words, and pairs
    of words if ``word_pairs`` is set.
    """
    if job.is_text:
        is_long = is_long_text(job)
        pairs = (1, 2) if word_pairs or not is_long else (1, 1)
        return TfidfVectorizer(sublinear_tf=True, min_df=2, ngram_range=pairs) if is_long else _short_text_features()
    if job.has_counts:
        return TfidfTransformer(sublinear_tf=True)
    return FunctionTransformer() if sparse.issparse(job.X) else StandardScaler()


def _date_parts(frame: Any) -> Any:
    """Year, month, day of the year and weekday of every date, columns side by side."""
    days = np.asarray(frame, dtype="datetime64[D]")
    years, months = days.astype("datetime64[Y]"), days.astype("datetime64[M]")
    parts = (years.astype(int), months.astype(int) % 12, (days - years).astype(int), (days.astype(int) + 3) % 7)
    return np.hstack(parts)


def sparse_table_features() -> Any:
    """For linear models: tf-idf of the title, scaled numbers with flags of missing ones, the rest as indicators."""
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    indicators = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=2)
    dates = make_pipeline(FunctionTransformer(_date_parts), OneHotEncoder(handle_unknown="ignore", min_frequency=2))
    parts = ((_short_text_features(), TITLE), (numbers, NUMBERS), (indicators, CATEGORIES), (dates, DATES))
    return make_column_transformer(*parts, sparse_threshold=1.0)


def dense_table_features(components: int) -> tuple[Any, list[int]]:
    """For trees: ``components`` of the tf-idf of the title, numbers as they are, codes of categories, parts of dates.

    Also returns which columns are codes; -1 is what was not seen before.
    """
    words = make_pipeline(_short_text_features(), TruncatedSVD(components, random_state=0))
    unknown = {"handle_unknown": "use_encoded_value", "unknown_value": -1, "encoded_missing_value": -1}
    codes = OrdinalEncoder(min_frequency=2, **unknown)
    features = make_column_transformer(
        (words, TITLE), (codes, CATEGORIES), ("passthrough", NUMBERS), (FunctionTransformer(_date_parts), DATES)
    )
    return features, list(range(components, components + len(CATEGORIES)))


def _short_text_features() -> FeatureUnion:
    """Words, pairs of words, and three to five characters within words."""
    words = TfidfVectorizer(sublinear_tf=True, min_df=2, ngram_range=(1, 2))
    characters = TfidfVectorizer(sublinear_tf=True, min_df=2, analyzer="char_wb", ngram_range=(3, 5))
    return FeatureUnion([("words", words), ("characters", characters)])
