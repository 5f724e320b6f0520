"""Failures met elsewhere with svmlight files, see cases.md."""

from __future__ import annotations

import io

import jax.numpy as jnp
import numpy as np
import pytest

import jaxsolvers as js
from jaxsolvers.data import read_svmlight, read_svmlight_files, write_svmlight


def read(text: str, **options):
    return read_svmlight(io.BytesIO(text.encode()), **options)


@pytest.mark.parametrize("zero_based", [True, False])
def test_the_index_base_given_is_the_one_used_case_136(zero_based):
    data = read("1 1:0.5\n0 2:0.3", zero_based=zero_based, n_features=3)
    expected = np.zeros((2, 3), np.float32)
    expected[[0, 1], [zero_based, 1 + zero_based]] = 0.5, 0.3
    np.testing.assert_array_equal(data.X.toarray(), expected)
    assert data.zero_based is zero_based


@pytest.mark.parametrize(("shift", "zero_based"), [(1, False), (0, True)])
def test_a_detected_base_is_reported_case_137(shift, zero_based):
    line = " ".join(f"{j + shift}:{j + 1}" for j in range(4))
    data = read(f"1 {line}\n2 {line}\n")
    assert data.zero_based is zero_based
    np.testing.assert_array_equal(data.X.toarray(), [[1, 2, 3, 4]] * 2)


def test_train_and_test_files_get_one_width_case_139():
    def files():
        return [io.BytesIO(b"1 1:1 5:1\n0 2:1\n"), io.BytesIO(b"1 4:2\n")]

    train, test = read_svmlight_files(files())
    assert train.X.shape == (2, 5) and test.X.shape == (1, 5)
    assert read_svmlight(files()[1]).X.shape == (1, 4)
    assert read_svmlight(files()[1], n_features=5).X.shape == (1, 5)
    with pytest.raises(ValueError, match=r"n_features=3.*got index up to 4"):
        read_svmlight(files()[1], n_features=3)
    model = js.LinearModel(jnp.ones(5), jnp.zeros(()), np.array([0, 1]))
    assert model.predict(test.X.toarray()).tolist() == [1]
    with pytest.raises(ValueError, match=r"\(n, 5\).*\(1, 4\)"):
        model.predict(read_svmlight(files()[1]).X.toarray())


def test_the_base_is_found_over_all_files_case_139():
    train, test = read_svmlight_files([io.BytesIO(b"1 1:1 3:1\n"), io.BytesIO(b"1 0:2\n")])
    assert train.zero_based and test.zero_based
    np.testing.assert_array_equal(train.X.toarray(), [[0, 1, 0, 1]])
    np.testing.assert_array_equal(test.X.toarray(), [[2, 0, 0, 0]])


def test_a_header_is_read_only_when_asked_for_case_139():
    text = "2 6 3\n0,2 1:1\n1 3:0.5\n"
    data = read(text, header=True, multilabel=True)
    assert data.X.shape == (2, 6)
    assert data.y.toarray().tolist() == [[True, False, True], [False, True, False]]
    with pytest.raises(ValueError, match=r"line 1, column 3.*'6'.*header=True"):
        read(text, multilabel=True)
    with pytest.raises(ValueError, match=r"line 1.*n_features=6, not 7"):
        read(text, header=True, multilabel=True, n_features=7)
    with pytest.raises(ValueError, match=r"line 1.*3 rows, got 2"):
        read(text.replace("2 6", "3 6"), header=True, multilabel=True)


def test_index_zero_in_a_one_based_file_is_named_case_140():
    with pytest.raises(ValueError, match=r"line 1, column 3: index 0 on line 1.*zero_based"):
        read("1 0:1 3:2", zero_based=False)
    with pytest.raises(ValueError, match=r"line 3, column 7: index 0 on line 3.*zero_based"):
        read("1 1:1\n# note\n1 2:1 0:2", zero_based=False)


def test_an_index_equal_to_the_width_contradicts_index_zero_case_140():
    for text in ("1 1:1 3:1\n1 0:2\n", "1 0:2\n1 1:1 3:1\n"):
        with pytest.raises(ValueError, match=r"index 3 needs.*n_features=3, but index 0 in.*line"):
            read(text, n_features=3)
    assert read("1 1:1 3:1\n", n_features=3).zero_based is False
    with pytest.raises(ValueError, match=r"line 1, column 7.*n_features=3 and zero_based=True"):
        read("1 1:1 3:1\n", n_features=3, zero_based=True)


def test_comments_and_blank_lines_are_skipped_case_142():
    data = read("1 1:0.5 2:1 # doc 42\n# note\n\n   \t\n")
    np.testing.assert_array_equal(data.X.toarray(), [[0.5, 1]])
    assert data.y.tolist() == [1]


@pytest.mark.parametrize("query_id", [True, False])
def test_query_ids_are_read_or_ignored_case_143(query_id):
    data = read("2 qid:7 1:0.5\n0 qid:7 2:1", query_id=query_id)
    np.testing.assert_array_equal(data.X.toarray(), [[0.5, 0], [0, 1]])
    assert data.y.tolist() == [2, 0]
    if query_id:
        assert data.qid.dtype == np.int64 and data.qid.tolist() == [7, 7]
    else:
        assert data.qid is None


def test_rows_without_labels_have_an_empty_label_set_case_145():
    data = read(" 1:0.25 3:1\n1:0.25 3:1\n", multilabel=True)
    np.testing.assert_array_equal(data.X.toarray(), [[0.25, 0, 1]] * 2)
    assert data.y.shape == (2, 0) and data.y.dtype == bool
    data = read(" 1:0.25 3:1\n1,3 2:1\n1:0.25 3:1\n", multilabel=True, n_labels=5)
    assert data.y.shape == (3, 5) and np.diff(data.y.indptr).tolist() == [0, 2, 0]
    with pytest.raises(ValueError, match=r"line 2, column 1.*'1:0.25'.*multilabel=True"):
        read("1 1:1\n1:0.25 3:1\n")


def test_unsorted_indices_are_sorted_and_repeated_ones_refused_case_146():
    data = read("5 4:1.0 2:3.0")
    np.testing.assert_array_equal(data.X.toarray(), [[0, 3, 0, 1]])
    assert data.X.indices.tolist() == [1, 3]
    with pytest.raises(ValueError, match=r"line 1, column 7: index 2 is given twice"):
        read("5 2:1 2:3")
    with pytest.raises(ValueError, match=r"line 2, column 11: index 2 is given twice"):
        read("1 1:1\n5 2:1 3:1 2:1")


def test_a_label_that_is_no_number_is_named_case_148():
    with pytest.raises(ValueError, match=r"line 1, column 1: a label.*'abcd-1234'"):
        read("abcd-1234 1:1")
    with pytest.raises(ValueError, match=r"line 2, column 2: a label.*'x'"):
        read("+1 1:1\n x 1:1")
    data = read("+1 1:1\n-1 1:1\n")
    assert data.y.tolist() == [1, -1] and data.y.dtype == np.int64


def test_writing_many_labels_needs_a_matrix_case_149():
    file = io.BytesIO()
    with pytest.raises(ValueError, match=r"y must be a 2-D indicator of shape \(2, K\).*\(2,\)"):
        write_svmlight(file, np.eye(2), [0, 1], multilabel=True)
    assert file.getvalue() == b""
    write_svmlight(file, np.eye(2), [[0, 1], [1, 1]], multilabel=True)
    assert file.getvalue() == b"1 1:1\n0,1 2:1\n"
