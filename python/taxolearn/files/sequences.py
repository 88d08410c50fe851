"""Sequences in model files: the letters or words they are made of, and which substring each feature is."""

import json
from typing import Any

import numpy as np

from taxolearn.features.sequence_codes import SequenceCodes
from taxolearn.features.sequence_features import LARGEST_CODE, SequenceFeatures
from taxolearn.files.container import ContentError, Packer, Unpacker, expect

__all__ = ["Substrings", "WordCodes"]


class Substrings:
    """How to store them."""

    kind: type[Any] = SequenceFeatures

    def pack(self, transformer: SequenceFeatures, packer: Packer) -> dict[str, Any]:
        """What was fitted; hashed substrings need their number only."""
        if transformer.codes_ is None:
            return {"units": None, "codes": None, "longest": 0, "n_features": int(transformer.n_features_)}
        assert transformer.units_ is not None
        return {
            "units": _pack_units(transformer.units_, packer),
            "codes": packer.array("codes", transformer.codes_),
            "longest": int(transformer._longest),
            "n_features": int(transformer.n_features_),
        }

    def unpack(self, transformer: SequenceFeatures, entry: Any, unpacker: Unpacker) -> None:
        """Take it, if it can be."""
        n_features = expect(entry["n_features"], int)
        transformer.units_, transformer.codes_, transformer.n_features_ = None, None, n_features
        if (entry["codes"] is None) != (transformer.n_hashed is not None):
            raise ContentError("its substrings are hashed and are not")
        if entry["codes"] is None:
            if n_features != transformer.n_hashed or n_features < 1:
                raise ContentError("its number of hashed substrings is wrong")
            return
        units = _unpack_units(entry["units"], unpacker)
        codes = unpacker.array(entry["codes"], n_features, kinds="i").astype(np.int64)
        longest = expect(entry["longest"], int)
        if longest < 0 or n_features < 1:
            raise ContentError("its letters are wrong")
        transformer.units_, transformer.codes_, transformer._longest = units, codes, longest
        possible = transformer._possible_codes()
        if possible > LARGEST_CODE or codes[0] < 0 or codes[-1] >= possible or (np.diff(codes) <= 0).any():
            raise ContentError("its substrings are wrong")


class WordCodes:
    """How to store the words of codes; letters need none."""

    kind: type[Any] = SequenceCodes

    def pack(self, transformer: SequenceCodes, packer: Packer) -> dict[str, Any]:
        """The words."""
        words = transformer.words_
        return {"units": None if words is None else _pack_units(words.tolist(), packer)}

    def unpack(self, transformer: SequenceCodes, entry: Any, unpacker: Unpacker) -> None:
        """Take them, if there are as many as the transformer needs."""
        if (entry["units"] is None) != (transformer.unit == "letters"):
            raise ContentError("it has words for letters, or none for words")
        units = entry["units"]
        transformer.words_ = None if units is None else np.array(_unpack_units(units, unpacker), dtype=object)


def _pack_units(units: list[str], packer: Packer) -> str:
    coded = json.dumps(units, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return packer.array("units", np.frombuffer(coded, dtype=np.uint8))


def _unpack_units(name: Any, unpacker: Unpacker) -> list[str]:
    coded = unpacker.array(name, None, kinds="u").tobytes().decode("utf-8", "surrogatepass")
    units = [expect(unit, str) for unit in expect(json.loads(coded), list)]
    if units != sorted(set(units)):
        raise ContentError("its letters are wrong")
    return units
