"""``train``, and models through all the commands."""

from __future__ import annotations

import json

import command_line
import jax
import numpy as np
import pytest
from command_line import D, N, Runner, labels, labels_option, rows, save

import jaxsolvers as js
from jaxsolvers.cli.solver_catalog import settings_of, solvers
from jaxsolvers.data import read_svmlight, write_svmlight

FORMS = {
    "binary": ("svm", "svm.gz", "npz", "dense.npz"),
    "multiclass": ("svm", "dense.npz"),
    "multilabel": ("svm", "npz", "dense.npz"),
    "regression": ("svm", "npz"),
}


@pytest.fixture
def run(capsys):
    return Runner(capsys)


def coefficients(path):
    """The coefficients and intercepts of a model file."""
    model = js.load(path)
    return np.asarray(model.coef), np.asarray(model.intercept)


def assert_same_model(one, other):
    for a, b in zip(coefficients(one), coefficients(other), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("task", "form"), [(task, form) for task, forms in FORMS.items() for form in forms]
)
def test_a_model_goes_through_every_command(run, tmp_path, task, form):
    data, model = save(tmp_path, task, form), tmp_path / "model.npz"
    test = save(tmp_path, task, form, seed=1)
    printed = run.fine("train", data, *labels_option(data), "-o", model)
    assert f"task     {task}" in printed and f"rows     {N} (" in printed
    assert f"features {D}" in printed and "epoch 5 " in printed and str(model) in printed

    known = json.loads(run.fine("info", model, "--json"))
    assert known["kind"] == "model" and known["task"] == task
    assert known["training"]["solver"] == "adagrad-rda"
    described = json.loads(run.fine("info", data, *labels_option(data), "--json"))
    assert described["rows"] == N and described["features"] == D
    assert described["nonzeros"] == rows().count_nonzero()

    loaded, X, y = js.load(model), rows(1), labels(task, rows(1))
    written = run.fine("predict", model, test).splitlines()
    found = loaded.predict(X)
    if task == "multilabel":
        found = np.asarray(found.toarray() if hasattr(found, "toarray") else found)
        expected = [",".join(map(str, np.flatnonzero(row).tolist())) for row in found]
        assert written == expected
    elif task == "regression":
        np.testing.assert_array_equal(np.array(written, found.dtype), found)
    else:
        assert written == list(map(str, found.tolist()))

    measured = json.loads(run.fine("evaluate", model, test, *labels_option(test), "--json"))
    assert measured["rows"] == N
    if task == "regression":
        np.testing.assert_allclose(
            measured["mean_squared_error"], np.mean((found - y) ** 2), rtol=1e-4
        )
        assert measured["r2"] > 0.5
    elif task == "multilabel":
        assert measured["mean_average_precision"] > 0.7
    else:
        assert measured["accuracy"] == pytest.approx(np.mean(found == y), abs=1e-12)
        assert measured["accuracy"] > 0.7


def test_the_default_is_adagrad_rda_with_an_intercept(run, tmp_path):
    data, model = save(tmp_path, "binary", "svm"), tmp_path / "model.npz"
    run.fine("train", data, "-o", model)
    X = rows()
    fit = js.fit(js.AdaGradRDA(0.1), X, labels("binary", X), epochs=5, intercept="column")
    coef, intercept = coefficients(model)
    np.testing.assert_array_equal(coef, fit.model.coef)
    np.testing.assert_array_equal(intercept, fit.model.intercept)
    assert js.load(model).classes.tolist() == [-1, 1]


@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel", "regression"])
def test_a_stream_trains_what_memory_does(run, tmp_path, task):
    data = save(tmp_path, task, "svm.gz")
    words = ["train", data, "--order", "cyclic", "--epochs", 2, "--positive-weight", 2]
    words = words[: -2 if task == "regression" else None]
    one, other = tmp_path / "one.npz", tmp_path / "other.npz"
    first = run.fine(*words, "-o", one)
    second = run.fine(*words, "-o", other, "--stream")
    assert_same_model(one, other)
    assert first.splitlines()[:4] == second.splitlines()[:4]  # rows, features, task, solver


@pytest.mark.parametrize("name", solvers())
@pytest.mark.parametrize("average", [[], ["--average"]], ids=["last", "average"])
def test_every_solver_trains_with_its_defaults(run, tmp_path, name, average):
    data, model = save(tmp_path, "binary", "dense.npz"), tmp_path / "model.npz"
    settings = settings_of(solvers()[name], {})
    needed = [s for s in settings if s.spec.kind == "number" and s.default_text == "required"]
    given = [word for setting in needed for word in (setting.option, "0.1")]
    # The file comes last: a flag without a value must not take it for its value.
    run.fine("train", "-o", model, "--solver", name, *given, *average, data)
    measured = json.loads(run.fine("evaluate", model, data, "--json"))
    assert measured["accuracy"] > 0.7, name
    assert json.loads(run.fine("info", model, "--json"))["training"]["solver"] == name


def test_options_and_set_reach_the_solver(run, tmp_path):
    data = save(tmp_path, "binary", "dense.npz")
    X, y = rows().toarray(), labels("binary", rows())
    options = "--solver AdaGradFOBOS --learning-rate 0.5 --delta=0.25 --loss smoothed-hinge"
    options += " --loss.gamma 0.5 --regularizer elastic-net --regularizer.l1 1e-2"
    options += " --regularizer.l2 1e-3 --accumulate batch --average polynomial --average-start 3"
    options += " --average-power 2 --batch-size 4 --epochs 2 --seed 5 --order uniform"
    options += " --intercept none --block-size 8"
    pairs = "learning_rate=0.5 delta=0.25 loss=SmoothedHinge loss.gamma=0.5 regularizer=ElasticNet"
    pairs += " regularizer.l1=1e-2 regularizer.l2=1e-3 accumulate=batch average=polynomial"
    pairs += " average.start=3 average.power=2"
    sets = [word for pair in pairs.split() for word in ("--set", pair)]
    rest = options.split("--batch-size")[1].split()
    one, other = tmp_path / "one.npz", tmp_path / "other.npz"
    run.fine("train", data, "-o", one, *options.split())
    run.fine("train", data, "-o", other, "--solver", "adagrad_fobos", *sets, "--batch-size", *rest)
    solver = js.AdaGradFOBOS(
        0.5,
        delta=0.25,
        loss=js.losses.SmoothedHinge(0.5),
        regularizer=js.regularizers.ElasticNet(1e-2, 1e-3),
        accumulate="batch",
    )
    averaged = js.Averaged(solver, start=3, kind="polynomial", power=2)
    run_of_fit = {"epochs": 2, "key": 5, "order": "uniform", "batch_size": 4, "block_size": 8}
    fit = js.fit(averaged, X, y, **run_of_fit)
    for path in (one, other):
        np.testing.assert_array_equal(coefficients(path)[0], fit.model.coef)
        assert coefficients(path)[1] == 0


@pytest.mark.parametrize(("task", "name"), [("binary", "fit"), ("multilabel", "fit_one_vs_rest")])
def test_options_of_the_run_reach_the_fit(run, tmp_path, monkeypatch, task, name):
    given = {}

    def noted(solver, X, y, **more):
        given.update(more)
        raise ValueError("noted")

    monkeypatch.setattr(f"jaxsolvers.cli.train.{name}", noted)
    words = "--epochs 7 --batch-size 3 --order cyclic --seed 9 --intercept none --block-size 6"
    expected = {
        "epochs": 7,
        "batch_size": 3,
        "order": "cyclic",
        "key": 9,
        "intercept": "none",
        "block_size": 6,
        "progress": True,
    }
    if task == "multilabel":
        words += " --positive-weight 4 --negatives 2.5 --chunk-size 8"
        expected |= {"positive_weight": 4.0, "negatives": 2.5, "chunk_size": 8}
    data = save(tmp_path, task, "dense.npz")
    assert "noted" in run.refused("train", data, "-o", tmp_path / "m", "--progress", *words.split())
    assert given == expected


def test_options_of_many_rankers_reach_the_fit(run, tmp_path):
    data, model = save(tmp_path, "multiclass", "dense.npz"), tmp_path / "model.npz"
    words = "--positive-weight 3 --negatives 1.5 --chunk-size 2 --set learning_rate=0.1,0.2,0.3"
    run.fine("train", data, "-o", model, *words.split())
    X = rows().toarray()
    fit = js.fit_one_vs_rest(
        js.AdaGradRDA(np.array([0.1, 0.2, 0.3])),
        X,
        labels("multiclass", rows()),
        positive_weight=3.0,
        negatives=1.5,
        epochs=5,
        intercept="column",
    )
    np.testing.assert_array_equal(coefficients(model)[0], fit.model.coef)


def test_positives_of_one_ranker_are_weighed(run, tmp_path):
    data, model = save(tmp_path, "binary", "dense.npz"), tmp_path / "model.npz"
    run.fine("train", data, "-o", model, "--positive-weight", "5")
    y = labels("binary", rows())
    weight = np.where(y == 1, 5.0, 1.0)
    solver, X = js.AdaGradRDA(0.1), rows().toarray()
    fit = js.fit(solver, X, y, sample_weight=weight, epochs=5, intercept="column")
    np.testing.assert_array_equal(coefficients(model)[0], fit.model.coef)


def test_base_and_norm_of_the_training_are_those_of_the_prediction(run, tmp_path):
    X, model = rows(), tmp_path / "model.npz"
    zero_based, later = tmp_path / "zero.svm", tmp_path / "later.svm"
    write_svmlight(zero_based, X, labels("binary", X), zero_based=True)
    without_first = X.toarray()
    without_first[:, 0] = 0  # a file that auto would take for one-based
    write_svmlight(later, without_first, labels("binary", X), zero_based=True)
    run.fine("train", zero_based, "-o", model, "--normalize", "l2")
    unit = js.data.normalize_rows(without_first)
    found = run.fine("predict", model, later, "--scores").split()
    expected = np.asarray(js.load(model).decision_function(unit))
    np.testing.assert_allclose(np.array(found, float), expected, rtol=1e-5, atol=1e-6)
    other = run.fine("predict", model, later, "--scores", "--normalize", "none").split()
    assert other != found


def test_float64_is_read_trained_and_used(run, tmp_path, x64):
    data, model = save(tmp_path, "regression", "svm"), tmp_path / "model.npz"
    run.fine("train", data, "-o", model, "--float64", "--epochs", 2)
    found = run.fine("predict", model, data).split()
    with jax.enable_x64(True):
        read = read_svmlight(data, dtype="float64")
        solver = js.AdaGradRDA(0.1, loss=js.losses.Squared())
        fit = js.fit(solver, read.X, read.y, epochs=2, intercept="column")
        assert fit.model.coef.dtype == np.float64
        np.testing.assert_array_equal(coefficients(model)[0], fit.model.coef)
        expected = np.asarray(fit.model.predict(read.X))
    np.testing.assert_array_equal(np.array(found, float), expected)
    assert (jax.numpy.result_type(float) == np.float64) == x64


def test_query_ids_are_passed_over(run, tmp_path):
    X, y = rows(), labels("binary", rows())
    plain, queries = save(tmp_path, "binary", "svm"), tmp_path / "queries.svm"
    write_svmlight(queries, X, y, query_id=np.arange(N) // 3, comment="with queries")
    one, other = tmp_path / "one.npz", tmp_path / "other.npz"
    run.fine("train", plain, "-o", one, "--epochs", 1)
    run.fine("train", queries, "-o", other, "--epochs", 1)
    assert_same_model(one, other)
    assert run.fine("predict", one, plain) == run.fine("predict", other, queries)


def test_the_task_may_be_told(run, tmp_path):
    data, model = tmp_path / "data.npz", tmp_path / "model.npz"
    X = rows().toarray()
    np.savez(data, X=X, y=labels("multiclass", rows()))
    run.fine("train", data, "-o", model, "--task", "regression", "--loss", "huber", "--epochs", 1)
    assert js.load(model).classes is None
    assert "--positive-weight must be left out for --task regression" in run.refused(
        "train", data, "-o", model, "--task", "regression", "--positive-weight", 2
    )
    run.fine("train", data, "-o", model, "--loss", "squared", "--epochs", 1)  # tells it as well
    assert js.load(model).classes is None
    run.fine("train", data, "-o", model, "--task", "multiclass", "--loss", "squared", "--epochs", 1)
    assert js.load(model).classes.tolist() == [1, 3, 5]
    np.savez(data, X=X, y=labels("multiclass", rows()) + 0.5)
    assert "regression (with a loss such as --loss squared)" in run.refused(
        "train", data, "-o", model, "--loss", "hinge"
    )
    run.fine("train", data, "-o", model, "--task", "multiclass", "--epochs", 1)
    assert js.load(model).classes.tolist() == [1.5, 3.5, 5.5]


def test_sparse_models_predict_alike(run, tmp_path):
    data = save(tmp_path, "multiclass", "dense.npz")
    one, other = tmp_path / "one.npz", tmp_path / "other.npz"
    words = ("train", data, "--regularizer", "l1", "--regularizer.strength", "0.02", "-o")
    run.fine(*words, one)
    run.fine(*words, other, "--sparse")
    known = json.loads(run.fine("info", other, "--json"))
    assert known["stored"] == "sparse" and known["density"] < 1
    assert run.fine("predict", one, data) == run.fine("predict", other, data)


def test_labels_of_any_kind_train(run, tmp_path):
    X = rows().toarray()
    names = np.array(["ham", "spam"])[(labels("binary", rows()) == 1).astype(int)]
    data, model = tmp_path / "mail.npz", tmp_path / "model.npz"
    np.savez(data, X=X, y=names)
    assert "ham and spam" in run.fine("train", data, "-o", model)
    assert run.fine("predict", model, data).split() == js.load(model).predict(X).tolist()


def test_the_validation_is_an_evaluation(run, tmp_path):
    data, test = save(tmp_path, "multiclass", "svm"), save(tmp_path, "multiclass", "svm", seed=1)
    model = tmp_path / "model.npz"
    printed = run.fine("train", data, "-o", model, "--validation", test)
    assert printed.endswith(f"\non {test}:\n" + run.fine("evaluate", model, test))
    quiet = run.fine("train", data, "-o", model, "--validation", test, "-q")
    assert quiet == printed[printed.index("\non ") :]
    kept = model.read_bytes()
    none = tmp_path / "none.svm"
    assert "No such file" in run.refused("train", data, "-o", model, "--validation", none)
    assert model.read_bytes() == kept


def test_an_existing_file_is_kept_unless_it_is_a_model(run, tmp_path):
    data, place = save(tmp_path, "binary", "dense.npz"), tmp_path / "place"
    place.write_text("a letter")
    message = run.refused("train", data, "-o", place)
    assert "--force" in message and place.read_text() == "a letter"
    run.fine("train", data, "-o", place, "--force", "--epochs", 1)
    before = place.read_bytes()
    run.fine("train", data, "-o", place, "--epochs", 2)  # a model of ours
    assert place.read_bytes() != before
    kept = data.read_bytes()
    assert "another file" in run.refused("train", data, "-o", data, "--force")
    assert data.read_bytes() == kept
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([data.name, "place"])


def test_a_training_that_diverges_leaves_nothing(run, tmp_path):
    data, model = save(tmp_path, "regression", "svm"), tmp_path / "model.npz"
    words = ("--solver", "pegasos", "--lam", "1e-30", "--loss", "squared", "--epochs", 20)
    assert "learning rate" in run.refused("train", data, "-o", model, *words)
    assert not model.exists()


def test_progress_is_shown_when_asked_for(run, tmp_path):
    data, model = save(tmp_path, "binary", "dense.npz"), tmp_path / "model.npz"
    done = run("train", data, "-o", model, "--progress")
    assert done.code == 0 and "row x ranker" in done.err
    done = run("train", data, "-o", model, "--quiet")
    assert done == (0, "", "")


def test_warnings_are_lines(run, tmp_path):
    X, model = rows(), tmp_path / "model.npz"
    y = labels("multilabel", X).toarray()
    y[:, 1] = False
    np.savez(tmp_path / "tags.npz", X=X.toarray(), y=y)
    done = run("train", tmp_path / "tags.npz", "-o", model)
    assert done.code == 0 and done.err.startswith("jaxsolvers: warning: 1 of 4 labels")
    assert "history" not in done.err
    assert done.err.count("\n") == 1


def test_a_header_gives_the_widths(run, tmp_path):
    X, data, model = rows(), tmp_path / "wide.svm", tmp_path / "model.npz"
    wide = command_line.sparse.csr_array((X.data, X.indices, X.indptr), shape=(N, D + 3))
    write_svmlight(data, wide, labels("binary", X), header=True)
    assert "--header" in run.refused("train", data, "-o", model)
    for words in (["--header"], ["--header", "--stream"]):
        run.fine("train", data, "-o", model, *words)
        assert js.load(model).n_features == D + 3
    assert len(run.fine("predict", model, data, "--header").split()) == N
    plain = save(tmp_path, "binary", "svm")
    run.fine("train", plain, "-o", model, "--features", D + 3)
    assert js.load(model).n_features == D + 3
    assert len(run.fine("predict", model, plain).split()) == N


def test_a_bias_of_the_solver_takes_the_place_of_the_column(run, tmp_path):
    data, model = save(tmp_path, "binary", "svm"), tmp_path / "model.npz"
    run.fine("train", data, "-o", model, "--solver", "pegasos", "--bias", "unregularized")
    solver, X = js.Pegasos(1e-4, bias="unregularized"), rows()
    fit = js.fit(solver, X, labels("binary", X), epochs=5)
    coef, intercept = coefficients(model)
    np.testing.assert_array_equal(coef, fit.model.coef)
    np.testing.assert_array_equal(intercept, fit.model.intercept)
