"""Where an image's packages come from: this host's apt configuration, turned to another Debian release."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tunnelbench.errors import UserError

DEBIAN_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
APT_HELPER = "/usr/lib/apt/apt-helper"

ReleaseFileReader = Callable[[str, str], str | None]
"""From an archive's address and a suite to the text of the suite's InRelease file, None if there is none."""


@dataclass(frozen=True, slots=True)
class AptSource:
    """Archives that apt reads binary packages from, as one stanza of sources.list(5) in deb822 style."""

    uris: tuple[str, ...]
    suites: tuple[str, ...]
    components: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()
    """The stanza's other fields by lower-case name, such as `signed-by`, values as written."""

    def stanza(self) -> str:
        """The source in deb822 style, ending with a newline."""
        fields = [
            ("types", "deb"),
            ("uris", " ".join(self.uris)),
            ("suites", " ".join(self.suites)),
            ("components", " ".join(self.components)),
            *self.options,
        ]
        return "".join(f"{name.title()}: {value}\n" for name, value in fields)


def sources_for(
    release: str,
    host_sources: Iterable[AptSource],
    *,
    mirror: str | None = None,
    read_release_file: ReleaseFileReader,
) -> tuple[AptSource, ...]:
    """The sources of a Debian release: its main suite, and its updates and security suites where they exist.

    Taken from `host_sources`: an archive from which the host has `bookworm-security` is asked for the
    release's `-security` suite. `mirror` takes the place of the host's main archive. Raises UserError where
    no archive has the release.
    """
    candidates = [
        one
        for source in host_sources
        if "main" in source.components
        for one in _one_per_address(_for_release(source, release))
    ]
    if mirror is not None:
        main = AptSource(
            (mirror,), (release, f"{release}-updates"), ("main",), (("signed-by", str(DEBIAN_KEYRING)),)
        )
        candidates = [main, *(_only(one, {f"{release}-security"}) for one in candidates)]
    found = [
        _only(one, {suite for suite in one.suites if _has_suite(one, suite, mirror, read_release_file)})
        for one in candidates
    ]
    if not any(release in source.suites for source in found):
        raise _release_not_found(release, candidates)
    return tuple(source for source in found if source.suites)


def host_sources(apt_directory: Path = Path("/etc/apt")) -> tuple[AptSource, ...]:
    """All enabled binary package sources of this host; raises UserError if a file can't be read."""
    parts = apt_directory / "sources.list.d"
    files = [apt_directory / "sources.list", *sorted(parts.glob("*.list")), *sorted(parts.glob("*.sources"))]
    return tuple(source for file in files if file.exists() for source in _parse_file(file))


def host_acquire_options(dump: str) -> str:
    """The lines of an `apt-config dump` on how this host fetches: proxies, retries, validity of indexes."""
    ours = ("Acquire::IndexTargets", "Acquire::CompressionTypes", "Acquire::cdrom", "Acquire::Changelogs")
    lines = (line for line in dump.splitlines() if line.startswith("Acquire::") and not line.startswith(ours))
    return "".join(f"{line}\n" for line in lines if not line.endswith(' "";'))


def apt_configuration_dump() -> str:
    """What `apt-config dump` prints; raises UserError on a host without apt."""
    try:
        return subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True).stdout
    except FileNotFoundError as error:
        raise UserError(
            "apt is missing, and images are made of Debian packages", advice="Use a Debian host."
        ) from error


def download_release_file(address: str, suite: str) -> str | None:
    """Fetches a suite's InRelease file as this host's apt does (proxies, credentials), None if it can't."""
    with tempfile.TemporaryDirectory(prefix="tunnelbench-") as directory:
        target = Path(directory) / "InRelease"
        url = f"{address.rstrip('/')}/dists/{suite}/InRelease"
        fetched = subprocess.run([APT_HELPER, "download-file", url, str(target)], capture_output=True)
        return target.read_text(errors="replace") if fetched.returncode == 0 else None


_SUITE = re.compile(
    r"(?P<base>buster|bullseye|bookworm|trixie|forky|duke|sid|(?:old)*stable|testing|unstable)"
    r"(?P<kind>|-updates|-security)"
)


def _for_release(source: AptSource, release: str) -> AptSource:
    """The source with the release's suites in place of its Debian suites, and without all others."""
    matches = (_SUITE.fullmatch(suite) for suite in source.suites)
    suites = tuple(dict.fromkeys(f"{release}{match['kind']}" for match in matches if match))
    return AptSource(source.uris, suites, ("main",), _with_debian_keyring(source.options))


def _one_per_address(source: AptSource) -> Iterator[AptSource]:
    for uri in source.uris:
        yield replace(source, uris=(uri,))


def _only(source: AptSource, suites: set[str]) -> AptSource:
    return replace(source, suites=tuple(suite for suite in source.suites if suite in suites))


def _has_suite(
    source: AptSource, suite: str, mirror: str | None, read_release_file: ReleaseFileReader
) -> bool:
    (address,) = source.uris
    # A mirror list can't be asked for a single file; apt itself will complain if a suite is missing.
    if address.startswith("mirror"):
        return True
    text = read_release_file(address, suite)
    if text is None:
        return False
    # Other publishers name their suites after Debian's releases too, so the name proves nothing.
    return address == mirror or re.search(r"^Origin: Debian$", text, re.MULTILINE) is not None


def _with_debian_keyring(options: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Accepts Debian's own keys beside the host's choice, which may be the keys of one release."""
    return tuple(
        (name, f"{value} {DEBIAN_KEYRING}")
        if name == "signed-by" and "\n" not in value and str(DEBIAN_KEYRING) not in value.split()
        else (name, value)
        for name, value in options
    )


def _release_not_found(release: str, candidates: list[AptSource]) -> UserError:
    advice = "Name a Debian mirror that has it with --mirror URL."
    addresses = dict.fromkeys(uri for source in candidates if release in source.suites for uri in source.uris)
    if not addresses:
        return UserError("the apt sources of this host name no Debian archive", advice=advice)
    return UserError(
        f"Debian {release} can't be had (not there, or not reachable) from {', '.join(addresses)}",
        advice=advice,
    )


def _parse_file(file: Path) -> Iterator[AptSource]:
    try:
        text = file.read_text()
    except OSError as error:
        raise UserError(
            f"{file} can't be read: {error.strerror}", advice="Make it readable, or build as root."
        ) from error
    return _parse_stanzas(text) if file.suffix == ".sources" else _parse_lines(text)


def _parse_stanzas(text: str) -> Iterator[AptSource]:
    without_comments = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for stanza in re.split(r"\n\s*\n", without_comments):
        fields = {
            name.lower(): value.strip(" \t")
            for name, value in re.findall(r"^([A-Za-z-]+):((?:.*)(?:\n[ \t].*)*)", stanza, re.MULTILINE)
        }
        enabled = fields.pop("enabled", "yes").lower() not in {"no", "false", "0", "off"}
        if not enabled or "deb" not in fields.pop("types", "").split():
            continue
        uris, suites, components = (
            tuple(fields.pop(name, "").split()) for name in ("uris", "suites", "components")
        )
        yield AptSource(uris, suites, components, tuple(fields.items()))


_ONE_LINE = re.compile(
    r"deb\s+(?:\[(?P<options>[^\]]*)\]\s*)?(?P<uri>\S+)\s+(?P<suite>\S+)(?P<components>[^#]*)"
)
_DEB822_NAMES = {"arch": "architectures", "lang": "languages", "target": "targets"}


def _parse_lines(text: str) -> Iterator[AptSource]:
    for line in text.splitlines():
        match = _ONE_LINE.match(line.strip())
        if match is None:
            continue
        pairs = (option.partition("=") for option in (match["options"] or "").split())
        options = tuple((_DEB822_NAMES.get(name, name), value.replace(",", " ")) for name, _, value in pairs)
        yield AptSource((match["uri"],), (match["suite"],), tuple(match["components"].split()), options)
