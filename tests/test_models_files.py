"""Models in files: whole or not at all, without pickle, the same to the bit."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsolvers as js
from jaxsolvers.models import archive

F = jnp.result_type(float)
RNG = np.random.default_rng(104)
COEF = RNG.normal(size=(4, 5)).astype(F)
COEF[:, 1:4] = 0
INTERCEPT = np.array([0.5, -np.inf, -0.0, 2], F)
NAMES = np.array(["d", "aä", "", "b"])
X = RNG.normal(size=(9, 5)).astype(F)


def same(found: js.LinearModel, model: js.LinearModel) -> None:
    """Every bit of the fields, and of what they answer."""
    pairs = {
        "coef": (found.densify().coef, model.densify().coef),
        "intercept": (found.intercept, model.intercept),
    }
    for name, (ours, theirs) in pairs.items():
        ours, theirs = np.asarray(ours), np.asarray(theirs)
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape, name
        assert ours.tobytes() == theirs.tobytes(), name
    assert type(found.coef) is np.ndarray or type(found.coef) is type(model.coef)
    assert found.output == model.output
    assert (found.classes is None) == (model.classes is None)
    for rows in (X, X[:1]):
        ours, theirs = found.decision_function(rows), model.decision_function(rows)
        assert np.asarray(ours).tobytes() == np.asarray(theirs).tobytes()
        assert list(found.predict(rows)) == list(model.predict(rows))


def kinds() -> dict[str, js.LinearModel]:
    device = js.LinearModel(jnp.asarray(COEF), jnp.asarray(INTERCEPT), NAMES)
    return {
        "device": device,
        "host": js.LinearModel(COEF, INTERCEPT, NAMES),
        "sparse": device.sparsify(),
        "without classes": js.LinearModel(COEF, INTERCEPT, None),
        "sets": js.LinearModel(COEF, INTERCEPT, NAMES, "sets"),
        "binary": js.LinearModel(jnp.asarray(COEF[0]), jnp.asarray(0.25, F), np.array([-1, 1])),
        "sparse binary": js.LinearModel(COEF[0], F.type(0.25), np.array([False, True])).sparsify(),
        "regression": js.LinearModel(COEF[0], F.type(1), None),
        "other device": js.LinearModel(jax.device_put(COEF, jax.devices()[3]), INTERCEPT, NAMES),
    }


@pytest.mark.parametrize("kind", kinds())
def test_a_round_trip_keeps_every_bit(kind: str, tmp_path: Path) -> None:
    model = kinds()[kind]
    model.save(tmp_path / "model")
    found = js.load(tmp_path / "model")
    same(found, model)
    found.save(tmp_path / "again")
    same(js.load(str(tmp_path / "again")), model)


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16, np.float32, ">f4"])
def test_coefficients_keep_their_dtype(dtype: Any, tmp_path: Path) -> None:
    coef, intercept = COEF.astype(dtype), np.zeros(4, dtype)
    for model in (
        js.LinearModel(coef, intercept, NAMES),
        js.LinearModel(coef, intercept, NAMES).sparsify(),
    ):
        model.save(tmp_path / "model")
        found = js.load(tmp_path / "model")
        assert found.coef.dtype == np.dtype(dtype).newbyteorder("=")
        assert found.intercept.dtype == np.dtype(dtype).newbyteorder("=")
        np.testing.assert_array_equal(found.densify().coef, coef)
        np.testing.assert_array_equal(found.predict(X), model.predict(X))


def test_double_precision_survives_a_session_without_it(tmp_path: Path) -> None:
    wide = np.array([1 / 3, 1e-300])
    js.LinearModel(wide, np.float64(0.1), None).save(tmp_path / "model")
    found = js.load(tmp_path / "model")
    assert found.coef.dtype == np.float64 and found.coef.tolist() == wide.tolist()


LABELS = {
    "int": np.array([3, -(2**62), 7, 0]),
    "uint8": np.array([3, 2, 7, 0], np.uint8),
    "float": np.array([0.1, -2.5, 1e300, 0]),
    "float16": np.array([0.1, -2.5, 3, 0], np.float16),
    "bfloat16": np.array([0.5, -2.5, 3, 0], jnp.bfloat16),
    "strings": NAMES,
    "bytes": np.array([b"x", b"", b"zz", b"y"]),
    "objects": NAMES.astype(object),
    "objects of ints": np.array([5, 4, 1, 9], object),
    "new strings": np.array(NAMES.tolist(), np.dtypes.StringDType()),
    "big endian": np.array([3, 2, 7, 0], ">i4"),
    "dates": np.array(["2020-01-01", "2021-05-04", "1999-12-31", "2000-01-01"], "M8[D]"),
}


@pytest.mark.parametrize("kind", LABELS)
def test_classes_of_any_kind(kind: str, tmp_path: Path) -> None:
    model = js.LinearModel(COEF, INTERCEPT, LABELS[kind])
    model.save(tmp_path / "model")
    found = js.load(tmp_path / "model")
    assert found.classes is not None and found.classes.tolist() == LABELS[kind].tolist()
    assert found.predict(X).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize(
    "labels", [[1, "a", 2, "b"], [True, 2, 3, 4], [None, "a", "b", "c"], [(1,), (2,), (3,), (4,)]]
)
def test_classes_of_mixed_kinds_are_refused_and_nothing_is_written(
    labels: list[Any], tmp_path: Path
) -> None:
    classes = np.empty(4, object)
    classes[:] = labels
    path = tmp_path / "model"
    path.write_text("precious")
    with pytest.raises(ValueError, match=r"^classes must be strings, numbers or bools of one kind"):
        js.LinearModel(COEF, INTERCEPT, classes).save(path)
    assert path.read_text() == "precious" and os.listdir(tmp_path) == ["model"]


def test_the_file_is_what_the_documentation_says(tmp_path: Path) -> None:
    model = js.LinearModel(COEF, INTERCEPT, NAMES)
    for path, one in ((tmp_path / "dense", model), (tmp_path / "sparse", model.sparsify())):
        one.save(path)
        with np.load(path, allow_pickle=False) as file:
            entries = {name: file[name] for name in file.files}
        assert str(entries["format"]) == "jaxsolvers" and str(entries["kind"]) == "LinearModel"
        assert int(entries["version"]) == 1 and str(entries["output"]) == "label"
        np.testing.assert_array_equal(entries["intercept"], INTERCEPT)
        np.testing.assert_array_equal(entries["classes"], NAMES)
        if path.name == "dense":
            np.testing.assert_array_equal(entries["coef"], COEF)
        else:
            assert entries["coef_shape"].tolist() == [4, 5]
            assert entries["coef_data"].dtype == F and len(entries["coef_indptr"]) == 5
            assert all(entries[f"coef_{n}"].dtype.kind == "i" for n in ("indices", "indptr"))


def test_paths_are_obeyed_literally(tmp_path: Path) -> None:
    model = js.LinearModel(COEF, INTERCEPT, NAMES)
    for name in ("model", "model.npz", "model.txt", "mödel v2."):
        model.save(str(tmp_path / name))
        same(js.load(os.fsencode(tmp_path / name)), model)
    assert sorted(os.listdir(tmp_path)) == sorted(["model", "model.npz", "model.txt", "mödel v2."])
    model.save(Path(os.path.relpath(tmp_path / "model")))  # relative
    (tmp_path / "link").symlink_to("model")
    js.LinearModel(2 * COEF, INTERCEPT, NAMES).save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    np.testing.assert_array_equal(js.load(tmp_path / "model").coef, 2 * COEF)
    for bad in (3, None, [tmp_path]):
        with pytest.raises(ValueError, match=r"^path must be the name of a file, got"):
            model.save(bad)
        with pytest.raises(ValueError, match=r"^path must be the name of a file, got"):
            js.load(bad)


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = js.LinearModel(COEF, INTERCEPT, NAMES)
    model.save(tmp_path / "model")

    def full(*args: Any, **rest: Any) -> None:
        raise OSError("no space left")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(archive.os, name, full)
            with pytest.raises(OSError, match="no space left"):
                js.LinearModel(2 * COEF, INTERCEPT, NAMES).save(tmp_path / "model")
        assert os.listdir(tmp_path) == ["model"]
        same(js.load(tmp_path / "model"), model)
    with pytest.raises(FileNotFoundError):
        model.save(tmp_path / "nowhere" / "model")
    with pytest.raises(FileNotFoundError):
        js.load(tmp_path / "nowhere")


def test_permissions_are_those_of_any_new_file(tmp_path: Path) -> None:
    js.LinearModel(COEF, INTERCEPT, NAMES).save(tmp_path / "model")
    (tmp_path / "plain").write_text("")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("model", "plain")]
    assert modes[0] == modes[1]


def test_a_model_saved_in_one_process_predicts_in_another(tmp_path: Path) -> None:
    model = js.LinearModel(COEF, INTERCEPT, NAMES)
    model.save(tmp_path / "model")
    np.save(tmp_path / "rows.npy", X)
    code = (
        "import sys, numpy as np, jaxsolvers as js; "
        "model = js.load(sys.argv[1]); rows = np.load(sys.argv[2]); "
        "print(model.predict(rows).tolist()); "
        "print(np.asarray(model.decision_function(rows)).tobytes().hex())"
    )
    paths = [str(tmp_path / "model"), str(tmp_path / "rows.npy")]
    run = subprocess.run(
        [sys.executable, "-c", code, *paths], capture_output=True, text=True, check=True,
        timeout=120, env={**os.environ, "JAX_ENABLE_X64": str(int(np.float64 == F))},
        cwd=Path(js.__file__).parents[1],
    )  # fmt: skip
    labels, scores = run.stdout.splitlines()
    assert labels == str(model.predict(X).tolist())
    assert scores == np.asarray(model.decision_function(X)).tobytes().hex()


# ---- files that are no models --------------------------------------------------------------------
def entries(**changed: Any) -> dict[str, Any]:
    """The entries of a sound file, some of them changed or (None) left out."""
    whole: dict[str, Any] = {
        "format": np.array("jaxsolvers"), "version": np.array(1), "kind": np.array("LinearModel"),
        "output": np.array("label"), "coef": COEF, "intercept": INTERCEPT, "classes": NAMES,
    }  # fmt: skip
    return {name: value for name, value in (whole | changed).items() if value is not None}


SPARSE = {
    "coef": None, "coef_data": np.ones(3), "coef_indices": np.array([0, 4, 1]),
    "coef_indptr": np.array([0, 2, 2, 3, 3]), "coef_shape": np.array([4, 5]),
}  # fmt: skip
UNSOUND = {
    "another format": (entries(format=np.array("else")), "no entry 'format' that says"),
    "no format": (entries(format=None), "no entry 'format' that says"),
    "no version": (entries(version=None), "no entry 'version'"),
    "no kind": (entries(kind=None), "no entry 'kind'"),
    "another kind": (entries(kind=np.array("KernelMachine")), "holds a 'KernelMachine'"),
    "no coef": (entries(coef=None), "no entry 'coef'"),
    "no intercept": (entries(intercept=None), "no entry 'intercept'"),
    "no output": (entries(output=None), "no entry 'output'"),
    "an unknown output": (entries(output=np.array("ranks")), "output must be one of"),
    "a version that is none": (entries(version=np.array("one")), "invalid literal"),
    "too few classes": (entries(classes=NAMES[:2]), "classes must be of shape"),
    "too few intercepts": (entries(intercept=INTERCEPT[:2]), "intercept must be of shape"),
    "an unknown dtype": (entries(coef_dtype=np.array("float3")), "unknown dtype 'float3'"),
    "a column out of range": (entries(**SPARSE | {"coef_indices": np.array([0, 5, 1])}), "columns"),
    "a negative column": (entries(**SPARSE | {"coef_indices": np.array([0, -1, 1])}), "columns"),
    "falling starts": (entries(**SPARSE | {"coef_indptr": np.array([0, 2, 1, 3, 3])}), "sound"),
    "too few entries": (entries(**SPARSE | {"coef_data": np.ones(2)}), "sound"),
    "NaN": (entries(**SPARSE | {"coef_data": np.full(3, np.nan)}), "finite"),
    "no row starts": (entries(**SPARSE | {"coef_indptr": None}), "no entry 'coef_indptr'"),
    "float columns": (entries(**SPARSE | {"coef_indices": np.ones(3)}), "no integers"),
    "three sizes": (entries(**SPARSE | {"coef_shape": np.array([4, 5, 6])}), "other ranks"),
}  # fmt: skip


@pytest.mark.parametrize("kind", UNSOUND)
def test_entries_that_are_missing_or_contradict_each_other(kind: str, tmp_path: Path) -> None:
    found, words = UNSOUND[kind]
    path = tmp_path / "model.npz"
    np.savez(path, **found)
    with pytest.raises(
        ValueError, match=rf"^path: '.*model\.npz' is no model of jaxsolvers: .*{words}"
    ):
        js.load(path)


def test_a_sound_sparse_file_by_hand(tmp_path: Path) -> None:
    np.savez(tmp_path / "model.npz", **entries(**SPARSE | {"coef_data": np.ones(3, F)}))
    found = js.load(tmp_path / "model.npz")
    assert found.densify().coef.tolist() == [[1, 0, 0, 0, 1], [0] * 5, [0, 1, 0, 0, 0], [0] * 5]


def test_a_newer_version_says_so(tmp_path: Path) -> None:
    np.savez(tmp_path / "model.npz", **entries(version=np.array(2)))
    with pytest.raises(ValueError, match=r"model\.npz' is in version 2 .*up to version 1.*newer"):
        js.load(tmp_path / "model.npz")


def test_files_of_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "file"
    np.save(tmp_path / "single.npy", COEF)
    objects = np.array([{"a": 1}], object)
    np.save(tmp_path / "pickle.npy", objects)
    np.savez(tmp_path / "pickles.npz", **entries(classes=np.array([None, 1, 2, 3], object)))
    contents = [b"", b"P", b"not a model", b"PK\x03\x04 half a zip", b"\x80\x04\x95pickle"]
    contents += [
        (tmp_path / name).read_bytes() for name in ("single.npy", "pickle.npy", "pickles.npz")
    ]
    for content in contents:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"^path: '.*file' is no model of jaxsolvers: "):
            js.load(path)
    with pytest.raises(IsADirectoryError):
        js.load(tmp_path)


def test_a_file_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    js.LinearModel(COEF, INTERCEPT, NAMES).save(tmp_path / "model")
    whole = (tmp_path / "model").read_bytes()
    for length in [*range(40), *range(40, len(whole), 31), len(whole) - 1]:
        (tmp_path / "part").write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"^path: .*part' is no model of jaxsolvers: "):
            js.load(tmp_path / "part")


def test_a_changed_byte_is_refused_or_changes_nothing(tmp_path: Path) -> None:
    model = js.LinearModel(COEF, INTERCEPT, NAMES)
    model.save(tmp_path / "model")
    whole = (tmp_path / "model").read_bytes()
    rng, refused = np.random.default_rng(0), 0
    for at in rng.choice(len(whole), 300, replace=False).tolist():
        changed = bytearray(whole)
        changed[at] ^= int(rng.integers(1, 256))
        (tmp_path / "changed").write_bytes(bytes(changed))
        try:
            found = js.load(tmp_path / "changed")
        except ValueError as error:
            assert "changed" in str(error)
            refused += 1
            continue
        np.testing.assert_array_equal(found.coef, COEF)
        np.testing.assert_array_equal(found.intercept, INTERCEPT)
    assert refused > 200
