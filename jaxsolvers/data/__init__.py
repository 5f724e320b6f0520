"""Data: generators today; files and sources on the way."""

from jaxsolvers.data.datasets import blobs

__all__ = ["blobs"]
