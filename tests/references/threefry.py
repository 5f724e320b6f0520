"""Threefry 2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw, SC 2011), one block at a time."""

import numpy as np

ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
WORD = 1 << 32


def threefry(key: tuple[int, int], counter: tuple[int, int]) -> tuple[int, int]:
    """The two 32-bit words that the key gives for a counter of two words."""
    keys = (key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDA)
    x, y = (counter[0] + keys[0]) % WORD, (counter[1] + keys[1]) % WORD
    for done in range(20):
        x = (x + y) % WORD
        turn = ROTATIONS[done % 8]
        y = ((y << turn) | (y >> (32 - turn))) % WORD ^ x
        if done % 4 == 3:
            s = done // 4 + 1
            x, y = (x + keys[s % 3]) % WORD, (y + keys[(s + 1) % 3] + s) % WORD
    return x, y


def chance(key: np.ndarray, t: int) -> float:
    """A uniform number of [0, 1): the 64 bits of counter t as a fraction."""
    high, low = threefry((int(key[0]), int(key[1])), (0, t))
    return high / WORD + low / WORD**2
