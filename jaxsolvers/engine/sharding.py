"""Rankers over devices: the mesh axis ``rankers``, which needs no communication."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

AXIS = "rankers"


def mesh_of(mesh: Mesh | None, X: Any) -> Mesh:
    """The user's mesh, or one of the single device that holds X.

    Raises:
      ValueError: not a Mesh, or one without the axis ``rankers``; the message names ``mesh``.
    """
    if mesh is None:
        return Mesh(np.array([_device_of(X)]), (AXIS,))
    if not isinstance(mesh, Mesh) or AXIS not in mesh.axis_names:
        given = mesh.axis_names if isinstance(mesh, Mesh) else mesh
        raise ValueError(f"mesh must be a jax.sharding.Mesh with an axis {AXIS!r}, got {given!r}")
    others = {name: size for name, size in mesh.shape.items() if name != AXIS and size > 1}
    if others:
        raise ValueError(f"mesh must have no axis but {AXIS!r} larger than 1, got {others}")
    return mesh


def n_devices(mesh: Mesh) -> int:
    """Devices along the axis ``rankers``."""
    return int(mesh.shape[AXIS])


def over_rankers(mesh: Mesh) -> NamedSharding:
    """Arrays whose leading axis is rankers."""
    return NamedSharding(mesh, PartitionSpec(AXIS))


def everywhere(mesh: Mesh) -> NamedSharding:
    """Arrays that every device holds whole."""
    return NamedSharding(mesh, PartitionSpec())


def _device_of(X: Any) -> Any:
    if isinstance(X, jax.Array):
        return min(X.devices(), key=lambda device: device.id)
    return next(iter(jax.numpy.zeros(()).devices()))  # honours jax_default_device


def shards(array: jax.Array) -> list[jax.Array]:
    """The pieces of an array over the devices, in order, each on its own device."""
    own = [shard for shard in array.addressable_shards if shard.replica_id == 0]
    shards = sorted(own, key=lambda shard: shard.index[0].start or 0)
    return [shard.data for shard in shards]
