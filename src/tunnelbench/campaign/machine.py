"""What a campaign was measured on: kernel, processor, images, programs."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path

import tunnelbench
from tunnelbench.lab.image import Image
from tunnelbench.store.model import Versions

_PROGRAM_PACKAGES = (
    "iperf3",
    "iproute2",
    "libssl3",
    "openssh-server",
    "openssl",
    "openvpn",
    "strongswan",
    "user-mode-linux",
    "wireguard-go",
    "wireguard-tools",
)


def versions(images: Mapping[str, Image]) -> Versions:
    """Reads this machine's state now, and the versions recorded with each image."""
    return Versions(
        product=tunnelbench.__version__,
        kernel=platform.release(),
        processor=_processor(),
        machine=_machine(),
        images={
            name: f"{image.release}, built {image.built_at:%Y-%m-%d %H:%M}" for name, image in images.items()
        },
        programs={name: _programs(image) for name, image in images.items()},
    )


def _programs(image: Image) -> dict[str, str]:
    found = {name: image.packages[name] for name in _PROGRAM_PACKAGES if name in image.packages}
    return {"kernel": image.kernel_version, **found}


def _processor() -> str:
    for line in _text("/proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        if key.strip().lower() == "model name":
            return value.strip()
    return platform.machine()


def _machine() -> dict[str, str]:
    facts = {"architecture": platform.machine(), "processors": str(os.cpu_count() or "unknown")}
    memory = next((line for line in _text("/proc/meminfo").splitlines() if line.startswith("MemTotal")), "")
    if memory:
        facts["memory"] = f"{int(memory.split()[1]) / 1024 / 1024:.1f} GiB"
    governor = _text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip()
    if governor:
        facts["frequency governor"] = governor
    congestion_control = _text("/proc/sys/net/ipv4/tcp_congestion_control").strip()
    if congestion_control:
        facts["TCP congestion control"] = congestion_control
    if " hypervisor" in _text("/proc/cpuinfo"):
        facts["virtualisation"] = "a virtual machine"
    facts["system"] = _system_name()
    return facts


def _system_name() -> str:
    for line in _text("/etc/os-release").splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip('"')
    return platform.system()


def _text(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
