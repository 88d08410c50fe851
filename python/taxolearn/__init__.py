"""Classification into large, structured sets of classes, with honest probabilities."""

from importlib.metadata import version

from taxolearn import datasets, decisions, features, kernels, metrics, model_selection
from taxolearn.blocks import Blocks
from taxolearn.couplings.coupling import Independent, Tree
from taxolearn.couplings.factors import LearnedCoupling
from taxolearn.couplings.graph import Graph
from taxolearn.estimators.centroid import CentroidClassifier
from taxolearn.estimators.embedding_classifier import LabelEmbeddingClassifier
from taxolearn.estimators.hierarchical_bayes import HierarchicalBayesClassifier
from taxolearn.estimators.kernel_logistic import KernelLogisticClassifier
from taxolearn.estimators.label_embedding import LabelEmbedding
from taxolearn.estimators.margin import MaxMarginTreeClassifier
from taxolearn.estimators.naive_bayes import NaiveBayesClassifier
from taxolearn.estimators.pool import PoolClassifier
from taxolearn.estimators.prune import prune
from taxolearn.estimators.recursive import RecursiveRegularizationClassifier
from taxolearn.estimators.top_down import TopDownClassifier
from taxolearn.estimators.top_down_nodes import TopDownResult
from taxolearn.estimators.top_down_tuning import LevelParameters
from taxolearn.files.save_and_load import load, read_report, save
from taxolearn.fitting.bayes import BayesResult
from taxolearn.fitting.expectation import ExpectationResult
from taxolearn.fitting.fit import FitResult, Solver
from taxolearn.fitting.margin import MarginResult
from taxolearn.targets import PartialLabels
from taxolearn.taxonomy.graph import ClassGraph
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.tuning.cross_validation import CrossValidation
from taxolearn.tuning.hyperparameters import Hyperparameters
from taxolearn.tuning.search import LearningResult

__all__ = [
    "BayesResult",
    "Blocks",
    "CentroidClassifier",
    "ClassGraph",
    "CrossValidation",
    "ExpectationResult",
    "FitResult",
    "Graph",
    "HierarchicalBayesClassifier",
    "Hyperparameters",
    "Independent",
    "KernelLogisticClassifier",
    "LabelEmbedding",
    "LabelEmbeddingClassifier",
    "LearnedCoupling",
    "LearningResult",
    "LevelParameters",
    "MarginResult",
    "MaxMarginTreeClassifier",
    "NaiveBayesClassifier",
    "PartialLabels",
    "PoolClassifier",
    "RecursiveRegularizationClassifier",
    "Solver",
    "Taxonomy",
    "TopDownClassifier",
    "TopDownResult",
    "Tree",
    "__version__",
    "datasets",
    "decisions",
    "features",
    "kernels",
    "load",
    "metrics",
    "model_selection",
    "prune",
    "read_report",
    "save",
]

__version__ = version("taxolearn")
