"""Trees of parameters: what their leaves must be, and which regularizer each leaf has."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxsolvers.members import Array
from jaxsolvers.protocol import Regularizer
from jaxsolvers.regularizers import NoRegularizer

__all__ = [
    "gradients_of",
    "is_function",
    "leaves_of",
    "move",
    "regularizers_in",
    "regularizers_of",
    "widest",
    "working_dtype",
]


def working_dtype(dtype: Any) -> np.dtype:
    """The dtype in which a leaf is trained: its own, or float32 where that is narrower."""
    # A bfloat16 sum stalls after 256 equal increments.
    return np.dtype(dtype if jnp.finfo(dtype).bits >= 32 else np.float32)


def widest(leaves: list[Any]) -> np.dtype:
    """The widest working dtype among the leaves, float32 if there are none."""
    dtypes = [working_dtype(leaf.dtype) for leaf in leaves]
    return max([np.dtype(np.float32), *dtypes], key=lambda dtype: dtype.itemsize)


def move(leaf: Array, weights: Array) -> Array:
    """The update that takes a parameter to its new weights, in the parameter's dtype."""
    # Rounded before the difference: an exact zero then stays one in any dtype.
    return weights.astype(leaf.dtype) - leaf


def leaves_of(params: Any, name: str) -> tuple[list[Any], Any]:
    """The leaves of the params, arrays or their shapes, and the structure of the tree.

    Raises:
      ValueError: no params, or a leaf that is not real floating; the message has its path.
    """
    if params is None:
        raise ValueError(
            f"{name} needs params, its new weights minus them are the updates: call "
            "update(updates, state, params), got params None"
        )
    found, structure = jax.tree_util.tree_flatten_with_path(params)
    leaves = []
    for path, leaf in found:
        array = leaf if isinstance(leaf, jax.ShapeDtypeStruct) else jnp.asarray(leaf)
        if not jnp.issubdtype(array.dtype, jnp.floating):
            raise ValueError(
                f"{name}: params{jax.tree_util.keystr(path)} must be of real floating numbers, got "
                f"{array.dtype}; optax.masked leaves it out"
            )
        leaves.append(array)
    return leaves, structure


def gradients_of(updates: Any, params: Any, name: str) -> list[Any]:
    """The leaves of the gradients, in the order of the params'.

    Raises:
      ValueError: a tree of another structure than params, or a leaf of another shape.
    """
    structure, given = jax.tree.structure(params), jax.tree.structure(updates)
    if given != structure:  # type: ignore[operator]
        raise ValueError(
            f"{name}: updates must be a tree like params, got\n  {given}\nfor params\n  {structure}"
        )
    gradients = [jnp.asarray(leaf) for leaf in jax.tree.leaves(updates)]
    for (path, leaf), gradient in zip(
        jax.tree_util.tree_leaves_with_path(params), gradients, strict=True
    ):
        if gradient.shape != jnp.shape(leaf):
            raise ValueError(
                f"{name}: updates{jax.tree_util.keystr(path)} must have the shape of its "
                f"parameter, {jnp.shape(leaf)}, got {gradient.shape}"
            )
    return gradients


def is_function(regularizer: Any) -> bool:
    """Whether it is a function of the params, and not a tree that happens to be callable."""
    if isinstance(regularizer, partial):  # jax.tree_util.Partial is a tree as well
        return True
    return callable(regularizer) and jax.tree_util.all_leaves([regularizer])


def regularizers_in(regularizer: Any) -> list[Regularizer]:
    """Those that are written in the argument, none of a function."""
    found = [] if is_function(regularizer) else jax.tree.leaves(regularizer, is_leaf=_is_end)
    return [own for own in found if isinstance(own, Regularizer)]


def regularizers_of(regularizer: Any, params: Any) -> list[Regularizer]:
    """The regularizer of each leaf of the params, in order.

    Args:
      regularizer: None, a Regularizer, a tree of these which is a prefix of params, or a function
        from params to one of them. Where ``optax.masked`` left a subtree out nothing is matched.
      params: the parameters, of any structure.

    Raises:
      TypeError: a tree of another structure than params; the message shows both.
      ValueError: something in it that is neither a Regularizer nor None.
    """
    if not jax.tree.leaves(params):  # also what optax.tree.map_params asks with
        return []
    tree = regularizer(params) if is_function(regularizer) else regularizer
    try:
        return _spread(tree, params)
    except _UnlikeError:
        raise TypeError(
            "regularizer (the mask of what is regularized) must be a tree like params or a prefix "
            f"of it, got\n  {jax.tree.structure(tree, is_leaf=_is_end)}\nfor params\n  "
            f"{jax.tree.structure(params)}"
        ) from None


class _UnlikeError(Exception):
    """Two trees differ in structure."""


def _spread(tree: Any, params: Any) -> list[Regularizer]:
    if _is_end(tree):
        return [NoRegularizer() if tree is None else tree] * len(jax.tree.leaves(params))
    if isinstance(params, optax.MaskedNode):
        return []
    if jax.tree_util.all_leaves([tree]):
        raise ValueError(
            "regularizer must be a Regularizer object, None, a tree of these or a function of "
            f"params, got {tree!r}"
        )
    (children, structure), (others, like) = _one_level(tree), _one_level(params)
    if structure != like:
        raise _UnlikeError
    pairs = zip(children, others, strict=True)
    return [own for child, other in pairs for own in _spread(child, other)]


def _is_end(tree: Any) -> bool:
    return tree is None or isinstance(tree, Regularizer)


def _one_level(tree: Any) -> tuple[list[Any], Any]:
    return jax.tree.flatten(tree, is_leaf=lambda node: node is not tree)
