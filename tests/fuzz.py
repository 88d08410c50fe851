"""Fuzzing of everything that reads files: ``python tests/fuzz.py --seconds 600`` (``pip install atheris`` first).

Every target takes the bytes of a file. A file is read, or refused by a ``ValueError``; any other exception, a crash,
ten seconds for one file, or two gigabytes of memory is a finding, and libFuzzer keeps the file. ``test_fuzz.py`` runs
the same targets on a few hundred files.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
_FIRST = struct.Struct("<16sIIQ32s")  # of a model file, as in taxolearn.files.container
_CHUNK = 1 << 24


class Target(NamedTuple):
    """What is tried, and files to begin with."""

    run: Callable[[bytes], None]
    seeds: list[bytes]


def make_targets(folder: Path) -> dict[str, Target]:
    """All targets; what they must write goes to the folder."""
    return {**_readers(), **_tables(), **_taxonomies(folder), **_models(folder)}


def _refusing(read: Callable[[bytes], object]) -> Callable[[bytes], None]:
    def run(content: bytes) -> None:
        with suppress(ValueError):
            read(content)

    return run


def _readers() -> dict[str, Target]:
    import numpy as np

    from taxolearn import datasets

    def reader(function: Callable[..., object], **options: object) -> Callable[[bytes], None]:
        return _refusing(lambda content: function(io.BytesIO(content), **options))

    svmlight = b"1 qid:3 1:0.5 4:1e-3 # a remark\n-2 2:7\n\n0,3 1:1\n"
    arff = (
        b"@relation r\n@attribute a numeric\n@attribute 'b c' {x,y}\n@attribute class hierarchical 1,1/2,3\n@data\n"
        b"1.5,x,1/2@3\n?,y,1\n{0 2.5,2 3}\n"
    )
    sizes = b"2 5 4\n0,3 1:0.5 4:1\n 2:7\n"
    mulan = (
        b"@relation r\n@attribute a numeric\n@attribute b {0,1}\n@attribute 'c d' {0,1}\n@data\n{0 1.5,1 1}\n{2 1}\n"
    )
    names = (
        b'<?xml version="1.0" encoding="utf-8"?>\n<labels>\n<label name="b"><label name="c d"/></label>\n</labels>\n'
    )

    def with_names(content: bytes) -> object:
        return datasets.read_mulan(io.BytesIO(content), io.BytesIO(names))

    def with_rows(content: bytes) -> object:
        return datasets.read_mulan(io.BytesIO(mulan), io.BytesIO(content))

    packed = io.BytesIO()
    np.savez(packed, data=np.ones(3), indices=np.arange(3), indptr=np.array([0, 1, 3]), y=np.array([0, 1]))
    return {
        "svmlight": Target(reader(datasets.read_svmlight), [svmlight, gzip.compress(svmlight)]),
        "svmlight-multilabel": Target(reader(datasets.read_svmlight, multilabel=True), [svmlight, sizes]),
        "lshtc": Target(reader(datasets.read_lshtc), [b"12 0:5 17:2 3:1\n7 1:1\n"]),
        "vw": Target(reader(datasets.read_vw), [b"3 | 1:0.5 7:2 9\n1 2.5 tag| a:1\n"]),
        "arff": Target(reader(datasets.read_arff), [arff]),
        "mulan": Target(_refusing(with_names), [mulan]),
        "mulan-labels": Target(_refusing(with_rows), [names]),
        "npz": Target(reader(datasets.read_npz), [packed.getvalue()]),
        "table": Target(reader(datasets.read_table), [b"a\tb\n1\t2\n"]),
        "text-pairs": Target(reader(datasets.read_text_pairs), [b'[["text", "label"], ["x", "y"]]']),
    }


def _tables() -> dict[str, Target]:
    from taxolearn.readers.tables import read_chunks

    def reader(kind: str) -> Callable[[bytes], None]:
        def read(content: bytes) -> None:
            how = content[0] if content else 0  # the first byte chooses
            encoding = ("utf-8", "latin-1", "utf-16", "shift_jis")[how & 3]
            quote, columns = (None if how & 4 else '"'), (["a", "b"] if how & 8 else None)
            for chunk in read_chunks(
                io.BytesIO(content[1:]), kind, encoding=encoding, quote=quote, columns=columns, rows=3
            ):
                assert all(len(column) == len(chunk.lines) for column in chunk.columns.values())

        return _refusing(read)

    csv, lines = b'a,b\n1,"x, ""y""\nz"\n2,3\n', b'{"a": "x", "b": 1}\n{"a": null, "b": 2.5}\n'
    targets = {
        "csv": Target(reader("csv"), [b"\x00" + csv, b"\x08" + csv.replace(b",", b";"), b"\x01" + gzip.compress(csv)]),
        "tsv": Target(reader("tsv"), [b"\x00" + csv.replace(b",", b"\t")]),
        "jsonl": Target(reader("jsonl"), [b"\x00" + lines, b"\x08" + lines]),
    }
    with suppress(ImportError):
        import pyarrow as pa
        import pyarrow.parquet as parquet

        packed = io.BytesIO()
        parquet.write_table(pa.table({"a": ["x", None, "z"], "b": [1.5, 2.5, None]}), packed)
        targets["parquet"] = Target(reader("parquet"), [b"\x08" + packed.getvalue()])
    return targets


def _taxonomies(folder: Path) -> dict[str, Target]:
    from taxolearn import Taxonomy

    def reader(kind: str) -> Callable[[bytes], None]:
        path = folder / f"taxonomy-{kind}"

        def read(content: bytes) -> None:
            path.write_bytes(content)
            tree = Taxonomy.from_file(path, format=kind)
            assert len(tree.names) == tree.n_nodes == len(set(tree.names.tolist()))

        return _refusing(read)

    seeds = {
        "paths": b"a b c\na b d\na e\n",
        "edges": b"0 1\n0 2\n1 3\n",
        "adjacency": b"root\ta\tb\na\tc\n",
        "newick": b"((c,d)b,'e f':1.5)a;",
        "json": b'{"name": "a", "children": [{"name": "b"}, {"name": "c", "children": [{"name": "d"}]}]}',
    }
    return {f"taxonomy-{kind}": Target(reader(kind), [seed]) for kind, seed in seeds.items()}


def _models(folder: Path) -> dict[str, Target]:
    import numpy as np

    import taxolearn

    path = folder / "model.taxo"

    def use(content: bytes) -> None:
        path.write_bytes(content)
        model = taxolearn.load(path)
        if hasattr(model, "steps"):
            model.predict_proba(["red apples", ""])
        else:
            model.predict_proba(np.ones((2, model.n_features_in_)))
        taxolearn.read_report(path)

    seeds = [(HERE / "files" / f"version1-{name}.taxo").read_bytes() for name in ("kernels", "texts")]
    targets = {"model": Target(_refusing(use), seeds)}
    for name, seed in zip(("kernels", "texts"), seeds, strict=True):
        (length,) = struct.unpack("<Q", seed[24:32])
        text, data = seed[_FIRST.size : _FIRST.size + length], seed[_FIRST.size + length :]

        # The checksums are made right again, or nothing would get past them.
        def with_header(content: bytes, data: bytes = data) -> bytes:
            return _FIRST.pack(seeds[0][:16], 1, 0, len(content), hashlib.sha256(content).digest()) + content + data

        def with_data(content: bytes, text: bytes = text, length: int = length) -> bytes:
            header = json.loads(text)
            header["size"] = _FIRST.size + length + len(content)
            header["checksums"] = [zlib.crc32(content[k : k + _CHUNK]) for k in range(0, len(content), _CHUNK)]
            return with_header(json.dumps(header, separators=(",", ":")).encode().ljust(length), content)

        targets[f"model-{name}-header"] = Target(_refusing(lambda content, f=with_header: use(f(content))), [text])
        targets[f"model-{name}-arrays"] = Target(_refusing(lambda content, f=with_data: use(f(content))), [data])
    return targets


# -- With atheris -----------------------------------------------------------------------------------------------------


def fuzz(name: str, seconds: int, folder: Path) -> None:
    """One target, in this process, until the time is over or something is found."""
    import warnings

    import atheris

    warnings.simplefilter("ignore")
    scratch, corpus = folder / "scratch", folder / "corpus"
    for each in (scratch, corpus):
        each.mkdir(parents=True, exist_ok=True)
    with atheris.instrument_imports(include=["taxolearn"]):
        target = make_targets(scratch)[name]
    for number, seed in enumerate(target.seeds):
        target.run(seed)
        (corpus / f"seed-{number}").write_bytes(seed)
    limits = [f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2048", "-max_len=65536", "-verbosity=0"]
    atheris.Setup(
        [name, str(corpus), f"-artifact_prefix={folder}/", "-seed=1", "-print_final_stats=1", *limits], target.run
    )
    atheris.Fuzz()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seconds", type=int, default=600, help="for all targets together (%(default)s)")
    parser.add_argument("--only", help="one target, by its name")
    parser.add_argument("--folder", type=Path, default=Path("build/fuzz"), help="for findings (%(default)s)")
    options = parser.parse_args()
    if options.only:
        fuzz(options.only, options.seconds, options.folder / options.only)
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        names = list(make_targets(Path(scratch)))
    failed = []
    for name in names:
        share = str(max(options.seconds // len(names), 1))
        command = [sys.executable, __file__, "--only", name, "--seconds", share, "--folder", str(options.folder)]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        files = next((line.split()[-1] for line in done.stderr.splitlines() if "number_of_executed_units" in line), "?")
        print(f"{name}: {files} files, {'ok' if done.returncode == 0 else 'FOUND'}", flush=True)
        if done.returncode != 0:
            failed.append(name)
            print(done.stdout[-4000:], done.stderr[-4000:], sep="\n", flush=True)
    print(f"{len(names) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
