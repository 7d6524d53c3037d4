"""The errors that are the user's to mend; the command line prints them without a traceback."""

from __future__ import annotations


class UserError(Exception):
    """Something the user can put right: what is wrong, and where there is advice, what to do."""

    def __init__(self, message: str, *, advice: str | None = None) -> None:
        """`message` says what is wrong and where; `advice` is one sentence that says what to do."""
        super().__init__(message)
        self.message = message
        self.advice = advice

    def __str__(self) -> str:
        return self.message if self.advice is None else f"{self.message}\n{self.advice}"
