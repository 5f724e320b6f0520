"""Choosing numbers: many candidates trained side by side, as rankers of one compiled program."""

from jaxsolvers.selection.online import online_selection
from jaxsolvers.selection.path import LambdaPath, lambda_path
from jaxsolvers.selection.result import GridResult
from jaxsolvers.selection.search import grid_search

__all__ = ["GridResult", "LambdaPath", "grid_search", "lambda_path", "online_selection"]
