"""Data: files, sources of rows, transforms and generators.

Nothing here imports scipy or scikit-learn before it is called.
"""

from jaxsolvers.data.chunks import QueryChunk
from jaxsolvers.data.datasets import blobs, multilabel_text, sparse_text
from jaxsolvers.data.sources import ArraySource, IteratorSource, Source, rechunk
from jaxsolvers.data.svmlight import SvmlightData, read_svmlight, read_svmlight_files
from jaxsolvers.data.svmlight_stream import SvmlightStream, iter_svmlight
from jaxsolvers.data.svmlight_writer import write_svmlight
from jaxsolvers.data.tags import TaggedSequences, hidden_tags
from jaxsolvers.data.transforms import hash_features, normalize_rows

__all__ = [
    "ArraySource",
    "IteratorSource",
    "QueryChunk",
    "Source",
    "SvmlightData",
    "SvmlightStream",
    "TaggedSequences",
    "blobs",
    "hash_features",
    "hidden_tags",
    "iter_svmlight",
    "multilabel_text",
    "normalize_rows",
    "read_svmlight",
    "read_svmlight_files",
    "rechunk",
    "sparse_text",
    "write_svmlight",
]
