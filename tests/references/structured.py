"""Structured problems: chains by enumeration, and the literal rounds on their sub-gradients.

Tsochantaridis, Joachims, Hofmann, Altun, JMLR 6 (2005), margin rescaling:

    l(w) = max_s Delta(s, y) + <w, phi(x, s)> - <w, phi(x, y)>,   g = phi(x, s^) - phi(x, y)

A chain's weights are [emission (K, d), transition (K, K), start (K,), end (K,)] in one vector.
All K^L sequences are tried, in lexicographic order, and the first of the best is taken.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from . import adagrad as adagrad_reference
from .averages import uniform_average


def features(x: np.ndarray, labels: Sequence[int], n_labels: int, ends: bool) -> np.ndarray:
    """phi(x, labels), (D,)."""
    emission = np.zeros((n_labels, x.shape[1]))
    transition = np.zeros((n_labels, n_labels))
    start, end = np.zeros(n_labels), np.zeros(n_labels)
    for at, label in enumerate(labels):
        emission[label] += x[at]
        if at > 0:
            transition[labels[at - 1], label] += 1.0
    start[labels[0]] += 1.0
    end[labels[-1]] += 1.0
    parts = [emission.ravel(), transition.ravel()]
    if ends:
        parts += [start, end]
    return np.concatenate(parts)


def hamming(labels: Sequence[int], right: Sequence[int], cost: np.ndarray | None) -> float:
    """The sum over positions of cost[label, right], 1 off the diagonal by default."""
    total = 0.0
    for r, s in zip(labels, right, strict=True):
        total += float(r != s) if cost is None else float(cost[r, s])
    return total


def best(
    w: np.ndarray,
    x: np.ndarray,
    n_labels: int,
    ends: bool,
    right: Sequence[int] | None = None,
    cost: np.ndarray | None = None,
) -> tuple[float, tuple[int, ...]]:
    """The largest score, Delta to `right` included if that is given, and who has it first."""
    value, found = -math.inf, ()
    for labels in itertools.product(range(n_labels), repeat=len(x)):
        score = float(w @ features(x, labels, n_labels, ends))
        if right is not None:
            score += hamming(labels, right, cost)
        if score > value:
            value, found = score, labels
    return value, found


def max_marginals(w: np.ndarray, x: np.ndarray, n_labels: int, ends: bool) -> np.ndarray:
    """For each position and label the best score of the sequences that have it, (L, K)."""
    table = np.full((len(x), n_labels), -math.inf)
    for labels in itertools.product(range(n_labels), repeat=len(x)):
        score = float(w @ features(x, labels, n_labels, ends))
        for at, label in enumerate(labels):
            table[at, label] = max(table[at, label], score)
    return table


def oracle(
    w: np.ndarray,
    x: np.ndarray,
    right: Sequence[int],
    n_labels: int,
    ends: bool = True,
    cost: np.ndarray | None = None,
) -> tuple[float, np.ndarray]:
    """The loss of one sequence, clipped at 0, and a sub-gradient, 0 where the loss is 0."""
    _, rival = best(w, x, n_labels, ends, right, cost)
    g = features(x, rival, n_labels, ends) - features(x, right, n_labels, ends)
    value = hamming(rival, right, cost) + float(w @ g)
    if value <= 0.0:
        return 0.0, np.zeros_like(g)
    return value, g


class Run(NamedTuple):
    """One entry per round."""

    w: list[np.ndarray]  # (D,) after the round
    average: list[np.ndarray]  # (D,) the mean of the weights before the rounds
    loss: list[float]  # sum of s_i l_i at the weights before the round
    violations: list[int]


Oracle = Callable[[np.ndarray, int], tuple[float, np.ndarray]]  # (w, i) -> (l_i, g_i)


def _taken(
    oracle: Oracle, w: np.ndarray, batch: Sequence[int], s: np.ndarray
) -> tuple[list[np.ndarray], float, int]:
    """s_i g_i of the batch's live examples, and its sums."""
    found, loss, violations = [], 0.0, 0
    for i in batch:
        if s[i] > 0.0:
            value, g = oracle(w, i)
            found.append(s[i] * g)
            loss += s[i] * value
            violations += int(np.any(g != 0.0))
    return found, loss, violations


def pegasos(
    oracle: Oracle,
    size: int,
    batches: Sequence[Sequence[int]],
    *,
    lam: float,
    weights: np.ndarray,
    project: bool = False,
) -> Run:
    """Steps w <- (1 - 1/t) w - (1/(lam t k)) sum s_i g_i, projected: ||w|| <= sqrt(l(0)/lam)."""
    radius = math.inf
    if project:
        losses = [oracle(np.zeros(size), i)[0] for i in range(len(weights))]
        radius = math.sqrt(float(weights @ losses) / weights.sum() / lam)
    run = Run([], [], [], [])
    w, t, counters = np.zeros(size), 0, []
    for batch in batches:
        found, loss, violations = _taken(oracle, w, batch, weights)
        if found:
            t += 1
            w = (1.0 - 1.0 / t) * w - sum(found) / (lam * t * len(found))
            norm = math.sqrt(w @ w)
            if norm > radius:
                w = (radius / norm) * w
        run.w.append(w.copy())
        run.loss.append(loss)
        run.violations.append(violations)
        counters.append(t)
    run.average.extend(uniform_average(np.zeros(size), run.w, counters))
    return run


def adagrad(
    oracle: Oracle,
    size: int,
    batches: Sequence[Sequence[int]],
    *,
    form: str,
    learning_rate: float,
    delta: float,
    l1: float,
    accumulate: str,
    weights: np.ndarray,
) -> Run:
    """AdaGrad with an l1 norm on the sub-gradients; the arguments are those of `adagrad`."""
    run = Run([], [], [], [])
    state = adagrad_reference.begin(np.zeros(size))
    counters = []
    for batch in batches:
        found, loss, violations = _taken(oracle, state.w, batch, weights)
        if found:
            gradient, rounds = np.sum(found, axis=0), len(found)
            square = np.sum([g * g for g in found], axis=0)
            if accumulate == "batch":
                gradient, rounds = gradient / rounds, 1
                square = gradient * gradient
            state = adagrad_reference.step(
                state, gradient, square, rounds, form=form, learning_rate=learning_rate,
                delta=delta, regularizer="l1", strengths={"strength": l1},
            )  # fmt: skip
        run.w.append(state.w.copy())
        run.loss.append(loss)
        run.violations.append(violations)
        counters.append(state.t)
    run.average.extend(uniform_average(np.zeros(size), run.w, counters))
    return run
