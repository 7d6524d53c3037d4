"""Makes an image's root tree: mmdebstrap unpacks Debian, then the tree is made neutral and fit for a node."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tunnelbench.errors import UserError
from tunnelbench.lab import extras, image_host, kernel_source
from tunnelbench.lab.bootstrap import UNPACKED, BuildStep, Report, archives, bootstrap, part
from tunnelbench.lab.mirror import AptSource

KERNEL = "/usr/bin/linux.uml"
MODULES = Path("usr/lib/uml/modules")

PACKAGES = (
    *("bash", "coreutils", "procps", "ca-certificates", "netbase", "openssl"),
    *("user-mode-linux", "kmod"),
    *("iproute2", "iputils-ping", "ethtool", "nftables", "tcpdump"),
    *("iperf3", "iperf", "netperf", "d-itg"),
    *("openvpn", "wireguard-go", "wireguard-tools", "tinc", "fastd", "nebula", "ocserv", "openconnect"),
    *("openssh-server", "openssh-client", "openssh-client-ssh1", "python3-asyncssh"),
    *("strongswan-swanctl", "charon-systemd", "libcharon-extra-plugins", "libcharon-extauth-plugins"),
    *("libstrongswan-standard-plugins", "libstrongswan-extra-plugins"),
    *("ppp", "xl2tpd", "pptp-linux", "pptpd", "sstp-client"),
    *("softether-vpnserver", "softether-vpnclient", "softether-vpncmd"),
    *("iw", "hostapd", "wpasupplicant"),
)

MISSING_PACKAGES = {
    "bullseye": frozenset({"wireguard-go", "nebula", "sstp-client", "netperf"}),
    "bookworm": frozenset({"netperf"}),
    "trixie": frozenset({"softether-vpnserver", "softether-vpnclient", "softether-vpncmd"}),
}
"""The Debian releases an image can be made of, and which of PACKAGES each lacks."""

PACKAGES_BESIDE = ("libreswan",)
"""Unpacked without being set up, because Debian forbids to install them beside others of PACKAGES."""

KernelOrigin = Literal["package", "source"]
"""Debian's package user-mode-linux, or built from Debian's kernel source with more in it."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What an image is to be made of."""

    release: str
    """Debian's code name."""
    mirror: str | None = None
    """The Debian mirror; None for this host's apt sources."""
    kernel: KernelOrigin = "package"
    extras: tuple[str, ...] = ()
    """Programs that Debian has not got, by their names in `extras.EXTRAS`."""


@dataclass(frozen=True, slots=True)
class TreeDescription:
    """What a finished tree holds."""

    suites: tuple[str, ...]
    kernel: str
    kernel_version: str
    modules_version: str
    packages: dict[str, str]
    kernel_source: str | None = None
    kernel_additions: tuple[str, ...] = ()
    extras: dict[str, str] = field(default_factory=dict[str, str])


def assemble(recipe: Recipe, directory: Path, cache: Path, report: Report) -> TreeDescription:
    """Makes `directory/root` a ready root tree, using `directory` for scratch files.

    What took long to build is kept in `cache` for the next time.

    The tree belongs to the caller alone, without set-user-id programs, so that its owner can be root in a
    user namespace that knows no other user. Raises UserError with the builder's last words on failure.
    """
    report(BuildStep("asking the archive", 0.0))
    image_host.require_builder()
    sources = archives(recipe.release, recipe.mirror)
    root = directory / "root"
    kernel = None
    if recipe.kernel == "source":
        scratch = directory / "kernel"
        kernel = kernel_source.built_kernel(
            recipe.release, sources, cache / "kernels", scratch, part(report, 0.0, 0.9)
        )
        image_host.discard(scratch)
        report = part(report, 0.9, 1.0)
    built = {name: extras.EXTRAS[name].built(cache / "extras", report) for name in recipe.extras}
    packages = [package for package in PACKAGES if package not in MISSING_PACKAGES[recipe.release]]

    def unpack() -> None:
        bootstrap(recipe.release, root, packages, sources, directory / "scratch", report, PACKAGES_BESIDE)

    try:
        unpack()
    except UserError as error:
        sources = complete_archives(sources, error)
        report(BuildStep("an archive lacks packages that it lists; beginning again without it", 0.0))
        image_host.discard(root)
        image_host.discard(directory / "scratch")
        unpack()
    report(BuildStep("making the tree neutral", 0.96))
    image_host.run_in_namespaces(["chown", "--recursive", "--no-dereference", "0:0", str(root)])
    if kernel is not None:
        _put_kernel(kernel, root)
    for name, made in built.items():
        extras.EXTRAS[name].put(made, root)
    modules_version = make_neutral(root)
    image_host.run_in_namespaces(["chroot", str(root), "depmod", modules_version])
    kernel_version = image_host.run_in_namespaces(["chroot", str(root), KERNEL, "--version"]).strip()
    return TreeDescription(
        suites=tuple(suite for source in sources for suite in source.suites),
        kernel=KERNEL,
        kernel_version=kernel_version,
        modules_version=modules_version,
        packages=_installed_packages(root),
        kernel_source=kernel.source if kernel else None,
        kernel_additions=kernel.additions if kernel else (),
        extras={name: extras.EXTRAS[name].version for name in recipe.extras},
    )


def complete_archives(sources: tuple[AptSource, ...], error: UserError) -> tuple[AptSource, ...]:
    """The archives without those that a failed build could not fetch listed packages from.

    Old releases' security archives are in that state now and then; the main archive has the same packages in
    older versions. Raises the error where that is not what was wrong.
    """
    missing = re.findall(r"Failed to fetch (\S+) +404 ", error.message)
    left = tuple(
        source
        for source in sources
        if not any(url.startswith(uri.rstrip("/") + "/") for uri in source.uris for url in missing)
    )
    if not missing or not left or left == sources:
        raise error
    return left


def make_neutral(root: Path) -> str:
    """Takes the build's and this host's traces out of a tree and adds what nodes expect.

    Returns the version of its kernel modules; raises UserError if there isn't exactly one.
    """
    for pattern in (
        *("etc/ssh/ssh_host_*", "etc/hostname", "dev/*", "run/*", "tmp/*", "var/log/*"),
        *("etc/apt/sources.list", "etc/apt/sources.list.d/*", "etc/apt/apt.conf.d/99mmdebstrap"),
        *("var/lib/apt/lists/*", "var/cache/apt/*", "var/cache/debconf/*-old", "var/lib/dpkg/*-old"),
        *("usr/share/man/*", "usr/share/locale/*", "usr/share/info/*"),
    ):
        for path in root.glob(pattern):
            _remove(path)
    (root / "etc/machine-id").write_text("")
    (root / "etc/resolv.conf").unlink(missing_ok=True)
    (root / "etc/resolv.conf").write_text("")
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
    for name in ("run", "tmp", "shared"):
        (root / name).mkdir(exist_ok=True)
    for path in _files_below(root):
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID):
            path.chmod(stat.S_IMODE(mode) & ~(stat.S_ISUID | stat.S_ISGID))
    return _link_modules(root)


def _link_modules(root: Path) -> str:
    versions = sorted(path.name for path in (root / MODULES).glob("*") if path.is_dir())
    if len(versions) != 1:
        raise UserError(
            f"{MODULES} in the image should hold one kernel's modules, not {', '.join(versions) or 'none'}",
            advice="The package user-mode-linux on this mirror may be incomplete; try another --mirror.",
        )
    # lib is a link to usr/lib in newer releases, a directory of its own in older ones.
    library = (root / "lib").resolve() / "modules"
    library.mkdir(exist_ok=True)
    link = library / versions[0]
    if not link.exists():
        link.symlink_to(os.path.relpath(root.resolve() / MODULES / versions[0], library))
    return versions[0]


def _put_kernel(kernel: kernel_source.BuiltKernel, root: Path) -> None:
    """Puts a kernel and its modules in the place of Debian's."""
    for path in (root / MODULES).glob("*"):
        _remove(path)
    shutil.copytree(kernel.directory / kernel_source.MODULES, root / MODULES / kernel.version)
    shutil.copy2(kernel.directory / kernel_source.PROGRAM, root / KERNEL.lstrip("/"))


def _installed_packages(root: Path) -> dict[str, str]:
    listing = subprocess.run(
        [
            "dpkg-query",
            f"--admindir={root / 'var/lib/dpkg'}",
            "--show",
            "--showformat=${Package}\t${Version}\n",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    unpacked = root / UNPACKED.lstrip("/")
    if unpacked.exists():
        listing += unpacked.read_text()
    return dict(sorted(line.split("\t") for line in listing.splitlines()))


def _files_below(root: Path) -> Iterator[Path]:
    for directory, _, files in os.walk(root):
        for name in files:
            yield Path(directory) / name


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
