"""Structured problems: what a structure scores, and how the best one is found.

``problem.py`` says what a problem is, ``chain.py`` is the one that ships, on the max-product
recurrence of ``viterbi.py`` and the padded sequences of ``sequences.py``. Letters: ``n`` examples,
``D`` weights; of chains ``L`` positions, ``K`` labels, ``d`` features of a position.
"""

from jaxsolvers.decoding.chain import LinearChain
from jaxsolvers.decoding.problem import Given, StructuredProblem

__all__ = ["Given", "LinearChain", "StructuredProblem"]
