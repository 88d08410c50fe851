"""Checkpoints: what was written comes back whole, or not at all."""

import errno
import hashlib
import io
import json
import os
import struct
import zipfile

import numpy as np
import pytest

from taxolearn.tuning.checkpoint import read_checkpoint, write_checkpoint

NAMES = ("kernel.variance", "σ²")
TYPE = np.dtype([("theta", float, (2,)), ("value", float), ("converged", bool)])
RECORDS = np.array([((0.1, -np.inf), np.nan, True), ((-0.0, 1e-300), 2.5, False)], TYPE)
STATE = {
    "fits": np.arange(24, dtype=np.float32).reshape(2, 3, 4)[:, ::-1],
    "adjoints": np.asfortranarray(np.linspace(0, 1, 12).reshape(3, 4)),
    "a.b/c": np.zeros((0, 3), dtype=np.int32),
}


def write(path, records=RECORDS, state=STATE, fingerprint="f"):
    write_checkpoint(path, fingerprint, NAMES, records, state)


def read(path):
    return read_checkpoint(path, "f", NAMES, TYPE)


def assert_whole(content, records=RECORDS, state=STATE):
    assert content[0].dtype == TYPE
    assert content[0].tobytes() == records.tobytes()
    assert list(content[1]) == list(state)
    for name, array in state.items():
        assert content[1][name].dtype == array.dtype
        np.testing.assert_array_equal(content[1][name], array)
        assert content[1][name].flags.writeable


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.checkpoint"


@pytest.fixture
def good(path):
    """The bytes of a good file, which is at the path too."""
    write(path)
    return path.read_bytes()


def signed(content):
    """The bytes of an archive with the checksum of a checkpoint: such a file was made by somebody."""
    stream = io.BytesIO(content)
    with zipfile.ZipFile(stream, "a") as archive:
        archive.comment = b"0" * 64
    content = stream.getvalue()[:-64]
    return content + hashlib.sha256(content).hexdigest().encode()


def archive(members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as made:
        for name, content in members.items():
            made.writestr(name, content)
    return stream.getvalue()


def members(content):
    with zipfile.ZipFile(io.BytesIO(content)) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def npy(array=None, *, descr="<f8", shape=(1,), data=b"\0" * 8, version=b"\1\0"):
    """An array in NumPy's format, or what claims to be one."""
    if array is not None:
        stream = io.BytesIO()
        np.lib.format.write_array(stream, array)
        return stream.getvalue()
    header = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode() + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(header)) + header + data


def test_what_was_written_comes_back(path):
    write(path)
    assert_whole(read(path))
    empty = np.zeros(0, TYPE)
    write(path, empty, {})
    assert_whole(read(path), empty, {})
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_file_is_a_plain_archive(good, path):
    with np.load(path, allow_pickle=False) as file:
        assert sorted(file.files) == ["evaluations", "header.json", "state.a.b/c", "state.adjoints", "state.fits"]
        assert file["evaluations"].tobytes() == RECORDS.tobytes()
        header = json.loads(file["header.json"])
    assert header == {"format": "taxolearn learning", "version": 1, "fingerprint": "f", "names": list(NAMES)}
    write(path)
    assert path.read_bytes() == good  # the same content, the same bytes


def test_no_file_is_no_error(path):
    assert read(path) is None
    assert read(path.parent / "nowhere" / "c") is None


def test_signing_makes_good_files(good, path):
    """So that those below are refused for what else is in them."""
    path.write_bytes(signed(archive(members(good))))
    assert_whole(read(path))


def refused(path, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match="delete it or choose another path") as caught:
        read(path)
    assert f"cannot use {path}" in str(caught.value)
    assert path.read_bytes() == content
    return str(caught.value)


def test_truncation_anywhere(good, path):
    for length in {*range(0, len(good), 7), *range(len(good) - 70, len(good))}:
        assert "damaged" in refused(path, good[:length])
    assert "damaged" in refused(path, good + b"\0")
    assert "damaged" in refused(path, good[1:])


def test_bit_flips_anywhere(good, path):
    for place in range(len(good)):
        if place % 5 == 0 or place > len(good) - 70:
            broken = bytearray(good)
            broken[place] ^= 1 << (place % 8)
            assert "damaged" in refused(path, bytes(broken))


@pytest.mark.parametrize("content", [b"", b"x", b"0" * 64, b"hello\n" * 100, b"\0" * 10000], ids=lambda c: f"{c[:3]}")
def test_foreign_files(content, path):
    refused(path, content)
    refused(path, content + hashlib.sha256(content).hexdigest().encode())


def test_another_problem(good, path):
    write(path, fingerprint="g")
    assert "belongs to another problem" in refused(path, path.read_bytes())
    path.write_bytes(good)
    with pytest.raises(ValueError, match="belongs to another problem"):
        read_checkpoint(path, "f", ("kernel.variance", "other"), TYPE)
    assert_whole(read(path))


def test_headers_of_others(good, path):
    parts = members(good)
    header = json.loads(parts["header.json"])

    def with_header(text):
        return refused(path, signed(archive({**parts, "header.json": text})))

    assert "format version 2" in with_header(json.dumps({**header, "version": 2}))
    with_header(json.dumps({**header, "format": "other"}))
    with_header(json.dumps({**header, "names": None}))
    for text in ("", "{", "[]", "null", "[" * 100000, '{"format": ' * 5000, b"\xff\xfe", "1" * 10000):
        with_header(text)
    del parts["header.json"]
    refused(path, signed(archive(parts)))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY",
        npy(shape=(10**12,)),
        npy(shape=(2**62, 2**62)),
        npy(shape=(10**30,)),
        npy(shape=(-5,)),
        npy(shape=(0.5,)),
        npy(shape="x"),
        npy(shape=(10**12,), descr="|V0"),
        npy(descr="|O"),
        npy(descr=[("a", "|O")]),
        npy(descr="nonsense"),
        npy(version=b"\3\0"),
        npy(version=b"\x09\0"),
        npy(data=b""),
        npy()[:30],
        npy(np.zeros(3)),
        npy(np.zeros((2, 2), TYPE)),
        npy(np.zeros(2, np.dtype([("theta", float, (3,)), ("value", float), ("converged", bool)]))),
    ],
    ids=range(19),
)
def test_arrays_of_others(content, good, path):
    parts = members(good)
    refused(path, signed(archive({**parts, "evaluations.npy": content})))


def test_claims_of_huge_sizes(good, path):
    # Compressed to next to nothing.
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in members(good).items():
            made.writestr(name, content)
        made.writestr("state.bomb.npy", npy(np.zeros(10**7)))
    assert "larger than the whole" in refused(path, signed(stream.getvalue()))
    # The directory of the archive says that a part has four gigabytes.
    plain = bytearray(archive(members(good)))
    place = plain.index(b"PK\1\2")
    plain[place + 20 : place + 28] = struct.pack("<II", 0xFFFFFFF0, 0xFFFFFFF0)
    refused(path, signed_as_it_is(bytes(plain)))


def signed_as_it_is(content):
    """Checksum and comment by hand, where the archive is too wrong to be opened."""
    content = content[:-2] + struct.pack("<H", 64)
    return content + hashlib.sha256(content).hexdigest().encode()


def test_any_bytes_with_a_right_checksum(good, path):
    """Whatever is changed inside, the answer is a checkpoint or a clear error."""
    generator = np.random.default_rng(0)
    body = good[:-64]
    for _ in range(400):
        broken = bytearray(body)
        for place in generator.integers(0, len(body), generator.integers(1, 4)):
            broken[place] = generator.integers(0, 256)
        path.write_bytes(bytes(broken) + hashlib.sha256(broken).hexdigest().encode())
        try:
            read(path)
        except ValueError as error:
            assert "delete it or choose another path" in str(error)  # noqa: PT017


def test_folder_in_place_of_a_file(tmp_path):
    with pytest.raises(ValueError, match="choose another path"):
        read(tmp_path)
    with pytest.raises(OSError, match="cannot write"):
        write(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_folder_is_missing(tmp_path):
    path = tmp_path / "nowhere" / "c"
    with pytest.raises(FileNotFoundError, match="cannot write") as caught:
        write(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("step", ["write_array", "fsync", "replace"])
@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()], ids=["full", "ctrl-c"]
)
def test_failed_write_leaves_the_old_file(step, error, good, path, monkeypatch):
    def fail(*arguments, **options):
        raise error

    owner = {"write_array": np.lib.format, "fsync": os, "replace": type(path)}[step]
    with monkeypatch.context() as patch:
        patch.setattr(owner, step, fail)
        with pytest.raises(type(error)) as caught:
            write(path, RECORDS[:1])
    if isinstance(error, OSError):
        assert caught.value.errno == errno.ENOSPC
        assert f"cannot write {path}" in str(caught.value)
    assert path.read_bytes() == good
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_arrays_of_objects_are_not_written(good, path):
    with pytest.raises(ValueError, match=r"[Oo]bject"):
        write(path, state={"fits": np.array([None])})
    assert path.read_bytes() == good


def test_what_killed_processes_left_is_removed(good, path):
    left = [path.with_name(f".{path.name}.{name}.partial") for name in ("0123abcd", "1")]
    kept = [path.with_name(name) for name in ("other.partial", ".other.12.partial", f"{path.name}.partial")]
    for file in left + kept:
        file.touch()
    assert_whole(read(path))
    assert set(path.parent.iterdir()) == {path, *kept}


KILLED = """
    import os, signal, sys, time
    from pathlib import Path
    import numpy as np
    from taxolearn.tuning.checkpoint import read_checkpoint, write_checkpoint

    path = Path(sys.argv[1])
    kind = np.dtype([("value", float)])

    def write(number):
        state = {"fits": np.full((200, 500), number, dtype=np.float32)}
        write_checkpoint(path, "f", ("a",), np.full(number, number, dtype=float).view(kind), state)

    def write_for_ever(number):
        while True:
            number += 1
            write(number)

    begin = time.perf_counter()
    write(1)
    duration = time.perf_counter() - begin
    generator = np.random.default_rng(0)
    number, left = 1, 0
    for _ in range(40):
        child = os.fork()
        if child == 0:
            write_for_ever(number)
        time.sleep(generator.uniform(0, 4 * duration))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        left += len(list(path.parent.glob(".*.partial")))
        records, state = read_checkpoint(path, "f", ("a",), kind)
        assert len(records) >= number
        number = len(records)
        assert (records["value"] == number).all()
        assert (state["fits"] == number).all() and state["fits"].shape == (200, 500)
        assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    print(number > 1, left > 0)
"""


def test_killed_while_writing(run_python, path):
    done = run_python(KILLED, path)
    assert done.returncode == 0, done.stderr
    # Some were written whole, some were killed in the midst.
    assert done.stdout.strip() == "True True"
