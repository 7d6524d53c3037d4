"""Where packages come from, worked out from samples of what hosts have in /etc/apt."""

from __future__ import annotations

from pathlib import Path

import pytest

from tunnelbench.errors import UserError
from tunnelbench.lab.mirror import (
    DEBIAN_KEYRING,
    AptSource,
    ReleaseFileReader,
    host_acquire_options,
    host_sources,
    sources_for,
)

DEB822 = """\
# The archive itself
Types: deb deb-src
URIs: http://mirror.example/debian
# a comment inside a stanza
Suites: bookworm bookworm-updates bookworm-backports
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://security.example/debian-security
Suites: bookworm-security
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mDMEY865UxYJKwYBBAHaRw8BAQdAd7Z0srwuhlB6JKFkcf4HU4SSS/xcRfwEQWzr
 -----END PGP PUBLIC KEY BLOCK-----

Enabled: no
Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main

Types: deb-src
URIs: http://sources.example/debian
Suites: bookworm
Components: main
"""

ONE_LINE = """\
# deb http://commented.example/debian bookworm main
deb [arch=amd64,i386 signed-by=/etc/apt/keyrings/company.gpg] https://mirror.example/debian bookworm main # x
deb-src http://mirror.example/debian bookworm main
deb http://security.example/debian-security bookworm-security main contrib
deb http://flat.example/ ./
"""

KEYRING = str(DEBIAN_KEYRING)


def archives(*present: tuple[str, str], origin: str = "Debian") -> ReleaseFileReader:
    """Archives that have these suites and no others."""
    return lambda address, suite: f"Origin: {origin}\nSuite: x\n" if (address, suite) in present else None


def write_apt(directory: Path, **files: str) -> Path:
    (directory / "sources.list.d").mkdir()
    for name, text in files.items():
        file, suffix = name.rsplit("_", 1)
        (directory / "sources.list.d" / f"{file}.{suffix}").write_text(text)
    return directory


def test_deb822_sources_are_read_with_their_options(tmp_path: Path) -> None:
    main, security = host_sources(write_apt(tmp_path, debian_sources=DEB822))
    assert main.uris == ("http://mirror.example/debian",)
    assert main.suites == ("bookworm", "bookworm-updates", "bookworm-backports")
    assert main.components == ("main", "contrib")
    assert main.options == (("signed-by", "/usr/share/keyrings/debian-archive-keyring.gpg"),)
    assert security.suites == ("bookworm-security",)
    assert "mDMEY865" in dict(security.options)["signed-by"]


def test_one_line_sources_are_read_with_their_options(tmp_path: Path) -> None:
    (tmp_path / "sources.list").write_text(ONE_LINE)
    main, security, flat = host_sources(tmp_path)
    assert main == AptSource(
        ("https://mirror.example/debian",),
        ("bookworm",),
        ("main",),
        (("architectures", "amd64 i386"), ("signed-by", "/etc/apt/keyrings/company.gpg")),
    )
    assert security.components == ("main", "contrib")
    assert flat.components == ()


def test_stanzas_read_back_as_written(tmp_path: Path) -> None:
    source, security = host_sources(write_apt(tmp_path, debian_sources=DEB822))
    again = tmp_path / "again"
    again.mkdir()
    write_apt(again, debian_sources=f"{source.stanza()}\n{security.stanza()}")
    assert host_sources(again) == (source, security)


def test_another_release_comes_from_the_same_archives(tmp_path: Path) -> None:
    hosts = host_sources(write_apt(tmp_path, debian_sources=DEB822))
    found = sources_for(
        "trixie",
        hosts,
        read_release_file=archives(
            ("http://mirror.example/debian", "trixie"),
            ("http://mirror.example/debian", "trixie-updates"),
            ("http://security.example/debian-security", "trixie-security"),
        ),
    )
    assert [(source.uris, source.suites, source.components) for source in found] == [
        (("http://mirror.example/debian",), ("trixie", "trixie-updates"), ("main",)),
        (("http://security.example/debian-security",), ("trixie-security",), ("main",)),
    ]
    assert dict(found[0].options)["signed-by"] == KEYRING
    assert dict(found[1].options) == dict(hosts[1].options), "a key in the file itself stays as it is"


def test_debians_keys_are_accepted_beside_the_hosts_own(tmp_path: Path) -> None:
    (tmp_path / "sources.list").write_text(ONE_LINE)
    (found,) = sources_for(
        "trixie",
        host_sources(tmp_path),
        read_release_file=archives(("https://mirror.example/debian", "trixie")),
    )
    assert dict(found.options)["signed-by"] == f"/etc/apt/keyrings/company.gpg {KEYRING}"


def test_suites_that_an_archive_lacks_are_left_out(tmp_path: Path) -> None:
    hosts = host_sources(write_apt(tmp_path, debian_sources=DEB822))
    (found,) = sources_for(
        "bullseye", hosts, read_release_file=archives(("http://mirror.example/debian", "bullseye"))
    )
    assert found.suites == ("bullseye",)


def test_other_publishers_suites_of_the_same_name_are_not_debian() -> None:
    vendor = AptSource(("https://vendor.example",), ("bookworm", "stable"), ("main",))
    read = archives(("https://vendor.example", "bookworm"), origin="Vendor")
    with pytest.raises(UserError, match=r"bookworm can't be had .* from https://vendor\.example"):
        sources_for("bookworm", [vendor], read_release_file=read)


def test_a_named_mirror_replaces_the_archive_but_not_security(tmp_path: Path) -> None:
    hosts = host_sources(write_apt(tmp_path, debian_sources=DEB822))
    found = sources_for(
        "trixie",
        hosts,
        mirror="http://near.example/debian",
        read_release_file=archives(
            ("http://near.example/debian", "trixie"),
            ("http://mirror.example/debian", "trixie"),
            ("http://security.example/debian-security", "trixie-security"),
        ),
    )
    assert [(source.uris[0], source.suites) for source in found] == [
        ("http://near.example/debian", ("trixie",)),
        ("http://security.example/debian-security", ("trixie-security",)),
    ]
    assert dict(found[0].options) == {"signed-by": KEYRING}


def test_a_mirror_without_the_release_is_named_in_the_error() -> None:
    with pytest.raises(UserError, match=r"http://near\.example/debian") as caught:
        sources_for("trixie", [], mirror="http://near.example/debian", read_release_file=archives())
    assert caught.value.advice is not None
    assert "--mirror" in caught.value.advice


def test_a_host_without_debian_archives_is_told_so() -> None:
    ubuntu = AptSource(("http://archive.example/ubuntu",), ("noble", "noble-updates"), ("main", "universe"))
    with pytest.raises(UserError, match="no Debian archive"):
        sources_for("bookworm", [ubuntu], read_release_file=archives())


def test_an_unreadable_source_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "sources.list").mkdir()
    with pytest.raises(UserError, match=r"sources\.list can't be read"):
        host_sources(tmp_path)


def test_proxies_and_validity_travel_and_index_layouts_do_not() -> None:
    dump = """\
APT::Architecture "amd64";
Acquire "";
Acquire::http "";
Acquire::http::Proxy "http://proxy.example:3142";
Acquire::Check-Valid-Until "false";
Acquire::cdrom::mount "/media/cdrom/";
Acquire::IndexTargets::deb::Packages::Optional "0";
Acquire::Languages:: "none";
DPkg::Post-Invoke:: "rm -f /var/cache/apt/*.bin";
"""
    assert host_acquire_options(dump).splitlines() == [
        'Acquire::http::Proxy "http://proxy.example:3142";',
        'Acquire::Check-Valid-Until "false";',
        'Acquire::Languages:: "none";',
    ]
