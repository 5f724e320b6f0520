"""AdaGrad as other packages document their update, each written straight from that formula.

Every function runs the rounds of `gradients` (T, d) from `start` (d,) and returns the weights
after each, (T, d).
"""

import numpy as np


def optax_adagrad(start, gradients, lr, initial=0.1, eps=1e-7):
    """optax.adagrad and Keras: w -= lr g / sqrt(G + eps), eps under the root."""
    w, G, rounds = np.array(start, float), initial, []
    for g in gradients:
        G = G + g**2
        w = w - lr * g / np.sqrt(G + eps)
        rounds.append(w)
    return np.array(rounds)


def torch_adagrad(start, gradients, lr, lr_decay=0.0, weight_decay=0.0, eps=1e-10):
    """torch.optim.Adagrad: the n-th step has lr/(1 + (n - 1) lr_decay), eps beside the root."""
    w, G, rounds = np.array(start, float), 0.0, []
    for n, g in enumerate(gradients, 1):
        g = g + weight_decay * w
        G = G + g**2
        w = w - lr / (1 + (n - 1) * lr_decay) * g / (np.sqrt(G) + eps)
        rounds.append(w)
    return np.array(rounds)


def tensorflow_adagrad(start, gradients, lr, initial=0.1, epsilon=0.0):
    """ApplyAdagrad (epsilon 0) and ApplyAdagradV2: w -= lr g / (sqrt(G) + epsilon)."""
    w, G, rounds = np.array(start, float), initial, []
    for g in gradients:
        G = G + g**2
        w = w - lr * g / (np.sqrt(G) + epsilon)
        rounds.append(w)
    return np.array(rounds)


def tensorflow_proximal_adagrad(start, gradients, lr, l1, l2, initial=0.1):
    """ApplyProximalAdagrad: a step of lr/sqrt(G), then sign(w)/(1 + step l2) [|w| - step l1]_+."""
    w, G, rounds = np.array(start, float), initial, []
    for g in gradients:
        G = G + g**2
        step = lr / np.sqrt(G)
        moved = w - step * g
        w = np.sign(moved) / (1 + step * l2) * np.maximum(np.abs(moved) - step * l1, 0)
        rounds.append(w)
    return np.array(rounds)


def tensorflow_adagrad_da(gradients, lr, l1, l2, initial=0.1):
    """ApplyAdagradDA, t the step from 1: w = -lr soft(sum g, l1 t) / (l2 lr t + sqrt(sum g^2))."""
    total, G, rounds = 0.0, initial, []
    for t, g in enumerate(gradients, 1):
        total, G = total + g, G + g**2
        shrunk = np.sign(total) * np.maximum(np.abs(total) - l1 * t, 0)
        rounds.append(-lr * shrunk / (l2 * lr * t + np.sqrt(G)))
    return np.array(rounds)
