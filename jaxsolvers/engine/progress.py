"""A progress bar, by tqdm (extra ``cli``)."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self


class Progress:
    """Counts rows x rankers done; silent unless asked."""

    def __init__(self, shown: bool, total: float | None) -> None:
        self._bar: Any = None
        if shown:
            try:
                from tqdm.auto import tqdm
            except ImportError:
                raise ImportError(
                    "progress=True needs tqdm: install the extra, jaxsolvers[cli]"
                ) from None
            self._bar = tqdm(total=total, unit="row x ranker", unit_scale=True)

    def __enter__(self) -> Self:
        return self

    def advance(self, done: float) -> None:
        if self._bar is not None:
            self._bar.update(done)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()
