"""What the user says about embeddings: texts for a sentence model, or columns that hold them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taxolearn.cli.main import USAGE, CommandError, column_option, option

__all__ = ["EmbeddingOptions"]

_RANGE = re.compile(r"(?P<name>.*?)(?P<first>[0-9]+)-(?P=name)?(?P<last>[0-9]+)")


@dataclass(frozen=True)
class EmbeddingOptions:
    """Columns and the sentence model."""

    embed: list[str] = column_option("--embed", "column of texts for a sentence model; may be repeated")
    embedding_model: str | None = option(
        "--embedding-model",
        metavar="PATH_OR_NAME",
        group="columns of a table",
        help='sentence model of --embed: a folder or a name for sentence-transformers (pip install "taxolearn'
        '[embeddings]"), or an .onnx file',
    )
    embedding_columns: list[str] = option(
        "--embedding-columns",
        action="append",
        default=[],
        metavar="COLUMNS",
        group="columns of a table",
        help="columns with the numbers of an embedding: a name, or a range such as e0-e383; may be repeated",
    )

    def columns(self) -> tuple[list[str], list[str]]:
        """Those to embed, and those with embeddings, each once."""
        if bool(self.embed) != (self.embedding_model is not None):
            raise CommandError(
                "--embed COLUMN and --embedding-model PATH_OR_NAME go together; embeddings that are in the table are "
                "named by --embedding-columns",
                USAGE,
            )
        vectors = [name for given in self.embedding_columns for name in _expanded(given)]
        return list(dict.fromkeys(self.embed)), list(dict.fromkeys(vectors))

    def settings(self, embed: list[str], embedding_columns: list[str]) -> dict[str, Any]:
        """Arguments of ``TableFeatures``. The path of a model is made absolute, so that it holds everywhere."""
        model = self.embedding_model
        if model is not None and Path(model).expanduser().exists():
            model = str(Path(model).expanduser().resolve())
        return {"embed": embed or None, "embedding_model": model, "embedding_columns": embedding_columns or None}


def _expanded(given: str) -> list[str]:
    """The columns of a range like e0-e383, e0-383 or e000-e383; else the name itself."""
    found = _RANGE.fullmatch(given)
    if found is None or int(found["first"]) > int(found["last"]):
        return [given]
    digits = len(found["first"]) if found["first"].startswith("0") else 0
    return [f"{found['name']}{k:0{digits}d}" for k in range(int(found["first"]), int(found["last"]) + 1)]
