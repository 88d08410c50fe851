"""Features that users of other libraries would take for a whole job."""

from typing import Any

from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from bench.problems.jobs import Job

SHORT = 300  # characters on average, below which characters are looked at as well


def is_long_text(job: Job) -> bool:
    """Whether the inputs are texts that are long enough for words alone."""
    return job.is_text and sum(map(len, job.X)) >= SHORT * len(job.X)


def usual_features(job: Job, word_pairs: bool = False) -> Any:
    """An unfitted transformer: tf-idf of texts and counts, standardized columns; what is weighted already stays.

    Short texts have words, pairs of words, and three to five characters within words; long ones have words, and pairs
    of words if ``word_pairs`` is set.
    """
    if job.is_text:
        is_long = is_long_text(job)
        pairs = (1, 2) if word_pairs or not is_long else (1, 1)
        words = TfidfVectorizer(sublinear_tf=True, min_df=2, ngram_range=pairs)
        if is_long:
            return words
        characters = TfidfVectorizer(sublinear_tf=True, min_df=2, analyzer="char_wb", ngram_range=(3, 5))
        return FeatureUnion([("words", words), ("characters", characters)])
    if job.has_counts:
        return TfidfTransformer(sublinear_tf=True)
    return FunctionTransformer() if sparse.issparse(job.X) else StandardScaler()
