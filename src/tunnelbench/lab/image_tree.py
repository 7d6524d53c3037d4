"""Makes an image's root tree: mmdebstrap unpacks Debian, then the tree is made neutral and fit for a node."""

from __future__ import annotations

import collections
import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tunnelbench.errors import UserError
from tunnelbench.lab import image_host
from tunnelbench.lab import mirror as apt

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


@dataclass(frozen=True, slots=True)
class BuildStep:
    """How far a build has come: the step being done, and the share of the work before it (0 to 1)."""

    text: str
    share: float


Report = Callable[[BuildStep], None]


@dataclass(frozen=True, slots=True)
class TreeDescription:
    """What a finished tree holds."""

    suites: tuple[str, ...]
    kernel: str
    kernel_version: str
    modules_version: str
    packages: dict[str, str]


def assemble(release: str, directory: Path, mirror: str | None, report: Report) -> TreeDescription:
    """Makes `directory/root` a ready root tree of the release, using `directory` for scratch files.

    The tree belongs to the caller alone, without set-user-id programs, so that its owner can be root in a
    user namespace that knows no other user. Raises UserError with the builder's last words on failure.
    """
    report(BuildStep("asking the archive", 0.0))
    image_host.require_builder()
    sources = apt.sources_for(
        release, apt.host_sources(), mirror=mirror, read_release_file=apt.download_release_file
    )
    root = directory / "root"
    _bootstrap(release, root, directory, sources, report)
    report(BuildStep("making the tree neutral", 0.96))
    image_host.run_in_namespaces(["chown", "--recursive", "--no-dereference", "0:0", str(root)])
    modules_version = make_neutral(root)
    image_host.run_in_namespaces(["chroot", str(root), "depmod", modules_version])
    kernel_version = image_host.run_in_namespaces(["chroot", str(root), KERNEL, "--version"]).strip()
    return TreeDescription(
        suites=tuple(suite for source in sources for suite in source.suites),
        kernel=KERNEL,
        kernel_version=kernel_version,
        modules_version=modules_version,
        packages=_installed_packages(root),
    )


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


_STEPS = {
    "running apt-get update": BuildStep("reading package lists", 0.02),
    "downloading packages": BuildStep("downloading the base system", 0.09),
    "extracting archives": BuildStep("unpacking the base system", 0.12),
    "installing essential": BuildStep("installing the base system", 0.22),
    "installing remaining": BuildStep("installing the VPN programs", 0.45),
    "cleaning package": BuildStep("cleaning up", 0.95),
}
"""mmdebstrap's messages, and the share of a build's time that passes before each."""


def _bootstrap(
    release: str, root: Path, directory: Path, sources: tuple[apt.AptSource, ...], report: Report
) -> None:
    packages = [package for package in PACKAGES if package not in MISSING_PACKAGES[release]]
    scratch = directory / "scratch"
    scratch.mkdir(parents=True)
    # Proxy settings may hold passwords, so they travel in a file that only its owner reads.
    configuration = scratch / "apt.conf"
    configuration.touch(mode=0o600)
    configuration.write_text(apt.host_acquire_options(apt.apt_configuration_dump()))
    source_list = scratch / "debian.sources"
    source_list.touch(mode=0o600)
    source_list.write_text("\n".join(source.stanza() for source in sources))
    command = [
        *("mmdebstrap", "--mode=root", "--format=directory", "--variant=minbase"),
        f"--include={','.join(packages)}",
        f"--aptopt={configuration}",
        # A build that power failure interrupts is thrown away, so there is nothing to save file by file.
        "--dpkgopt=force-unsafe-io",
        *(release, str(root), str(source_list)),
    ]
    process = subprocess.Popen(
        image_host.in_namespaces(command),
        env={**image_host.environment(), "TMPDIR": str(scratch)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    assert process.stderr is not None
    last_lines: collections.deque[str] = collections.deque(maxlen=12)
    try:
        for line in process.stderr:
            last_lines.append(line.rstrip())
            for beginning, step in _STEPS.items():
                if line.startswith(f"I: {beginning}"):
                    report(step)
    except BaseException:
        process.kill()
        # Its end of the pipe closes when the last process of the build is gone.
        process.stderr.read()
        raise
    finally:
        process.wait()
    if process.returncode != 0:
        raise _build_error(release, "\n".join(last_lines))
    shutil.rmtree(scratch, ignore_errors=True)


def _build_error(release: str, output: str) -> UserError:
    return UserError(
        f"Debian {release} could not be unpacked; the last words were:\n{output}",
        advice=image_host.advice_on(output),
    )


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
