"""Faulty files end in 2 with one line that says where, never in a traceback."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import zipfile

import numpy as np
import pytest
from command_line import N, Runner, labels, rows, save
from scipy import sparse


@pytest.fixture
def run(capsys):
    return Runner(capsys)


@pytest.fixture
def model(run, tmp_path):
    path = tmp_path / "model.npz"
    run.fine("train", save(tmp_path, "binary", "dense.npz"), "-o", path, "--epochs", 1)
    return path


LONG = b"1 1:1 # " + b"-" * 92 + b"\n"  # so many that the first look does not reach the end
FAULTS = {
    "truncated": (b"1 1:0.5 2:1\n-1 2:1 3:", "line 2, column 10"),
    "garbled": (b"1 1:0.5\n-1 2:1\n1 2;3\n", "line 3, column 3"),
    "not UTF-8": (b"1 1:0.5\n-1 2:1 \xff\xfe\n", "line 2, column 8"),
    "zero bytes": (b"1 1:0.5\n\x00\x00\x00\n", "line 2, column 1"),
    "words": (b"1 1:0.5\nspam 2:1\n", "line 2, column 1"),
    "infinity": (b"1 1:0.5\n-1 2:1e999\n", "line 2, column 6"),
    "index twice": (b"1 1:0.5\n-1 2:1 2:2\n", "line 2, column 8"),
    "several labels too late": (LONG * 11_000 + b"1,2 1:1\n", "line 11001, column 1"),
    "empty": (b"", "no line that holds a row"),
    "text": (b"Dear reader,\n", "line 1, column 1"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_command_says_where(run, tmp_path, model, fault):
    text, where = FAULTS[fault]
    path = tmp_path / "faulty.svm"
    path.write_bytes(text)
    commands = [
        ["train", path, "-o", tmp_path / "new.npz"],
        ["train", path, "-o", tmp_path / "new.npz", "--stream"],
        ["evaluate", model, path],
        ["info", path],
    ]
    if fault != "several labels too late":
        commands.append(["predict", model, path])
    for words in commands:
        message = run.refused(*words)
        assert where in message, (words, message)
        assert "faulty.svm" in message
    assert not (tmp_path / "new.npz").exists()


def test_hints_speak_of_options(run, tmp_path):
    path = tmp_path / "rows.svm"
    path.write_bytes(LONG * 11_000 + b"1,2 1:1\n")
    assert "--task multilabel reads" in run.refused("train", path, "-o", tmp_path / "m")
    path.write_bytes(b"3 2\n1 1:1\n")
    assert "--header reads" in run.refused("info", path)
    path.write_bytes(b"1 1:1\n0 0:1\n")
    message = run.refused("train", path, "-o", tmp_path / "m", "--zero-based", "no")
    assert "--zero-based yes or auto reads" in message and "line 2" in message


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_files_that_are_cut_off(run, tmp_path, model, compress):
    whole = compress(save(tmp_path, "binary", "svm").read_bytes())
    path = tmp_path / "rows.svm.gz"
    for size in (len(whole) - 9, len(whole) // 2, 12):
        path.write_bytes(whole)
        assert f"rows                 {N}\n" in run.fine("info", path)
        path.write_bytes(whole[:size])
        for words in (["info", path], ["train", path, "-o", tmp_path / "m"]):
            assert "damaged or cut off" in run.refused(*words)


def test_files_that_are_missing_or_no_files(run, tmp_path, model):
    none = tmp_path / "none"
    for words in (
        ["train", none, "-o", tmp_path / "m"],
        ["predict", none, none],
        ["predict", model, none],
        ["evaluate", model, none],
        ["info", none],
    ):
        assert f"{none}: No such file" in run.refused(*words)
        here = [tmp_path if word == none else word for word in words]
        assert "folder" in run.refused(*here) or "directory" in run.refused(*here)


def test_other_files_are_no_models(run, tmp_path, model):
    data = save(tmp_path, "binary", "svm")
    for path in (data, save(tmp_path, "binary", "dense.npz")):
        assert "is no model of jaxsolvers" in run.refused("predict", path, data)
    np.savez(tmp_path / "newer", format="jaxsolvers", version=99, kind="LinearModel")
    assert "newer" in run.refused("predict", tmp_path / "newer.npz", data)


def test_pickled_objects_are_refused_and_never_run(run, tmp_path, model):
    ran = tmp_path / "ran"

    class Trap:
        def __reduce__(self):
            return (open, (str(ran), "w"))

    trap = np.array([Trap()], object)
    data = tmp_path / "data.npz"
    for arrays in ({"X": trap, "y": [1]}, {"X": np.ones((1, 2)), "y": trap}):
        np.savez(data, allow_pickle=True, **arrays)
        for words in (
            ["train", data, "-o", tmp_path / "m"],
            ["predict", model, data],
            ["info", data],
        ):
            assert "data.npz is no sound NumPy file" in run.refused(*words)
    np.save(tmp_path / "y.npy", trap, allow_pickle=True)
    np.savez(data, X=np.ones((1, 2)))
    labels_file = ["--labels", tmp_path / "y.npy"]
    assert "y.npy" in run.refused("train", data, "-o", tmp_path / "m", *labels_file)
    assert not ran.exists()


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        ({"X": np.ones((3, 2))}, "--labels"),
        ({"y": np.ones(3)}, "it must have an array X"),
        ({"X": np.ones(3), "y": np.ones(3)}, "2-d"),
        ({"X": np.ones((3, 2)), "y": np.ones(4)}, r"one entry per row of X \(3\)"),
        ({"X": np.ones((3, 2)), "y": np.float64(1)}, "one entry per row"),
        ({"X": np.array([["a", "b"]]), "y": np.ones(1)}, "real numbers"),
        ({"X": np.full((3, 2), np.nan), "y": np.ones(3)}, "finite"),
        ({"X": np.full((3, 2), 1e300), "y": np.ones(3)}, "finite"),
        ({"X": np.ones((0, 2)), "y": np.ones(0)}, "at least one row"),
        ({"X": np.ones((3, 2)), "y": np.ones(3)}, "two classes"),
        ({"X": np.ones((3, 2)), "y": np.ones((3, 2)) * 5}, "indicator"),
        ({"X": np.ones((3, 2)), "y": np.array([1, 2, np.nan])}, "finite"),
        (
            {
                "format": b"coo",
                "data": np.ones(1),
                "row": [0],
                "col": [0],
                "shape": (1, 1),
                "y": [1],
            },
            "CSR or CSC",
        ),
    ],
)
def test_archives_that_do_not_fit(run, tmp_path, arrays, expected):
    np.savez(tmp_path / "data.npz", **arrays)
    message = run.refused("train", tmp_path / "data.npz", "-o", tmp_path / "m")
    assert re.search(expected, message), message


@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize(
    "change",
    [
        {"indices": np.array([0, 9, 1, 0])},
        {"indices": np.array([0, -1, 1, 0])},
        {"indptr": np.array([0, 9, 3, 4])},
        {"indptr": np.array([0, 2, 99, 4])},
        {"indptr": np.array([0, 1])},
        {"shape": np.array([3])},
        {"shape": np.array([-3, 3])},
        {"data": np.ones(2)},
        {"data": np.array(["a"] * 4)},
        {"indices": np.array([0.5, 1, 1, 0])},
    ],
)
def test_sparse_matrices_that_are_unsound(run, tmp_path, model, layout, change):
    parts = {
        "format": layout.encode(),
        "data": np.ones(4),
        "indices": np.array([0, 2, 1, 0]),
        "indptr": np.array([0, 2, 3, 4]),
        "shape": np.array([3, 3]),
        "y": np.array([0, 1, 0]),
    }
    np.savez(tmp_path / "data.npz", **parts)
    run.fine("info", tmp_path / "data.npz")
    np.savez(tmp_path / "data.npz", **(parts | change))
    assert "data.npz" in run.refused("info", tmp_path / "data.npz")
    assert "data.npz" in run.refused("train", tmp_path / "data.npz", "-o", tmp_path / "m")


def test_labels_belong_to_one_place(run, tmp_path):
    data, y = save(tmp_path, "binary", "dense.npz"), tmp_path / "y.npy"
    np.save(y, labels("binary", rows()))
    words = ["-o", tmp_path / "m", "--labels", y]
    assert "--labels must be left out" in run.refused("train", data, *words)
    text = save(tmp_path, "binary", "svm")
    assert "--labels is for .npz files" in run.refused("train", text, *words)
    assert "single array" in run.refused("train", y, "-o", tmp_path / "m")
    csc = tmp_path / "csc.npz"
    sparse.save_npz(csc, sparse.csc_array(rows()))
    run.fine("train", csc, *words, "--epochs", 1)


def mutated(rng, text: bytes) -> bytes:
    """The text with a few bytes changed, removed, repeated or replaced by odd tokens."""
    body = bytearray(text)
    odd = (b"\n", b" ", b":", b"#", b",", b"nan", b"-", b"e", b"\xff", b"\x00", b"\r", b"1e99")
    for _ in range(rng.integers(1, 3)):
        at = int(rng.integers(len(body) + 1))
        kind = rng.integers(6)
        digits = [i for i, byte in enumerate(body) if 48 <= byte < 58]
        if kind > 3 and digits:
            body[digits[at % len(digits)]] = 48 + int(rng.integers(10))
        elif kind == 0:
            body[at:] = b""
        elif kind == 1:
            body[at:at] = odd[rng.integers(len(odd))]
        elif kind == 2:
            body[at : at + int(rng.integers(1, 5))] = b""
        else:
            body[at:at] = body[at : at + 20]
    return bytes(body)


def quiet_end(done) -> bool:
    """Whether a run ended as runs may end: well, or with one line and 2."""
    refused = done.code == 2 and done.err.startswith("jaxsolvers: error: ")
    return "Traceback" not in done.err and (
        done.code == 0 or (refused and done.err.count("\n") == 1)
    )


def test_mutated_text_ends_well_or_in_2(run, tmp_path, model):
    rng = np.random.default_rng(0)
    path = tmp_path / "mutated.svm"
    texts = [b"\n".join(save(tmp_path, t, "svm").read_bytes().split(b"\n")[:4]) for t in TASKS]
    texts.append(gzip.compress(texts[0]))
    codes = []
    for number in range(300):
        path.write_bytes(mutated(rng, texts[number % len(texts)]))
        for words in (["info", path], ["predict", model, path, "--drop-new-features"]):
            done = run(*words)
            assert quiet_end(done), (path.read_bytes(), done)
            codes.append(done.code)
    assert 100 < sum(code == 0 for code in codes) < 500  # both ends were met


TASKS = ("binary", "multilabel", "regression")


def test_mutated_text_trains_or_is_refused(run, tmp_path):
    rng = np.random.default_rng(1)
    path = tmp_path / "mutated.svm"
    text = save(tmp_path, "binary", "svm").read_bytes()
    for number in range(40):
        path.write_bytes(mutated(rng, text))
        words = ["--features", "12", "--task", "binary", "--epochs", 1, "--batch-size", 8]
        stream = ["--stream"] * (number % 2)
        done = run("train", path, "-o", tmp_path / "m", *words, *stream)
        assert quiet_end(done), (path.read_bytes(), done)


def test_mutated_archives_end_well_or_in_2(run, tmp_path, model):
    rng = np.random.default_rng(2)
    whole = [save(tmp_path, "binary", "dense.npz").read_bytes(), model.read_bytes()]
    plain = io.BytesIO()
    with zipfile.ZipFile(plain, "w") as archive:
        for name in ("X", "y"):
            file = io.BytesIO()
            np.save(file, rows().toarray() if name == "X" else labels("binary", rows()))
            archive.writestr(f"{name}.npy", file.getvalue())
    whole.append(plain.getvalue())
    path = tmp_path / "mutated.npz"
    for number in range(150):
        body = bytearray(whole[number % len(whole)])
        for _ in range(rng.integers(1, 4)):
            at = int(rng.integers(len(body)))
            body[at : at + 1] = bytes([int(rng.integers(256))]) if rng.random() < 0.6 else b""
        path.write_bytes(bytes(body)[: int(rng.integers(len(body))) if number % 5 == 0 else None])
        for words in (["info", path], ["predict", path, path], ["predict", model, path]):
            done = run(*words)
            assert quiet_end(done), (words, done)
    assert N == 48  # the shapes of one program
