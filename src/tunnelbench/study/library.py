"""The studies that come with the product, and how a study is found by name or path."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from tunnelbench.errors import UserError
from tunnelbench.study.nearest import advice_on


def bundled() -> dict[str, Path]:
    """The bundled study files by name, in alphabetical order."""
    folder = Path(str(resources.files("tunnelbench.study") / "bundled"))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def resolve(name_or_path: str) -> Path:
    """The file of a study: a bundled one by its name, any other by its path.

    A name with a slash or ending in `.toml` is a path. Raises UserError that names the nearest bundled study
    where there is no such study.
    """
    is_path = "/" in name_or_path or name_or_path.endswith(".toml")
    if not is_path and name_or_path in bundled():
        return bundled()[name_or_path]
    path = Path(name_or_path)
    if path.is_file():
        return path
    advice = advice_on(path.stem, bundled(), "bundled studies")
    raise UserError(f"there is no study '{name_or_path}'", advice=f"{advice} Any other is named by its path.")
