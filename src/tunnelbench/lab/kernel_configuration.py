"""The configuration of a kernel built from source: Debian's for User Mode Linux, and what VPNs need."""

from __future__ import annotations

import re
from collections.abc import Iterable

ADDED = (
    *("WIREGUARD", "NET_PKTGEN", "XFRM_INTERFACE", "NET_VRF", "BAREUDP"),
    *("L2TP_V3", "L2TP_IP", "L2TP_ETH", "NET_FOU_IP_TUNNELS"),
    *("WIRELESS", "CFG80211", "MAC80211", "WLAN", "MAC80211_HWSIM"),
    *("CRYPTO_USER_API_HASH", "CRYPTO_USER_API_SKCIPHER", "CRYPTO_USER_API_AEAD"),
)
"""What Debian's User Mode Linux lacks in one release or another, or has no name for: tunnels, a packet
generator, simulated Wi-Fi, and ciphers for programs (AF_ALG)."""

LEFT_OUT = (
    # Storage and file systems beyond the host's.
    *("SCSI", "MD", "MTD", "ATA_OVER_ETH", "BLK_DEV_DRBD", "BLK_DEV_NBD", "BLK_DEV_RAM", "BLK_DEV_RBD"),
    *("CDROM", "ZRAM", "TARGET_CORE", "MISC_FILESYSTEMS", "NETWORK_FILESYSTEMS", "NLS", "QUOTA", "DLM"),
    *("EXT2_FS", "EXT3_FS", "EXT4_FS", "BTRFS_FS", "XFS_FS", "JFS_FS", "F2FS_FS", "GFS2_FS", "OCFS2_FS"),
    *("NILFS2_FS", "BCACHEFS_FS", "REISERFS_FS", "ISO9660_FS", "UDF_FS", "FAT_FS", "MSDOS_FS", "VFAT_FS"),
    *("FSCACHE", "CACHEFILES", "PARTITION_ADVANCED"),
    # Buses, sensors and cards that no node has.
    *(
        "I2C",
        "IIO",
        "HSI",
        "GREYBUS",
        "SLIMBUS",
        "STM",
        "COUNTER",
        "EXTCON",
        "UIO",
        "C2PORT",
        "ECHO",
        "SOUND",
    ),
    *("ETHERNET", "PHYLIB", "PTP_1588_CLOCK", "SOFT_WATCHDOG", "N_GSM", "DUMMY_IRQ", "HID"),
    *("INPUT_KEYBOARD", "INPUT_MOUSE"),
    # Networks that no IP is sent over here, and devices that would come into being by themselves.
    *("ATM", "CAN", "NFC", "CAIF", "X25", "LAPB", "PHONET", "ATALK", "LLC2", "IEEE802154", "6LOWPAN", "RDS"),
    *("TIPC", "AF_RXRPC", "AF_KCM", "BATMAN_ADV", "CEPH_LIB", "NET_9P", "IP_DCCP", "IP_VS", "OPENVSWITCH"),
    *("HSR", "BONDING", "NET_TEAM", "NET_SCH_TEQL", "EQUALIZER", "SLIP", "NETCONSOLE", "NET_SELFTESTS"),
    *("VSOCKETS", "BPFILTER", "UML_NET_VDE", "UML_NET_SLIP"),
    # iptables and its kin: images have nftables.
    *("NETFILTER_XTABLES", "IP_NF_IPTABLES", "IP6_NF_IPTABLES", "IP_NF_ARPTABLES", "BRIDGE_NF_EBTABLES"),
    *("NFT_COMPAT", "NET_ACT_IPT", "NET_EMATCH_IPT", "IP_SET"),
    # What takes time at each system call and packet, or at the build.
    *("SECURITY_SELINUX", "SECURITY_SMACK", "SECURITY_APPARMOR", "SECURITY_TOMOYO", "AUDIT"),
    *("DEBUG_INFO", "DEBUG_INFO_DWARF_TOOLCHAIN_DEFAULT", "CRYPTO_TEST", "XZ_DEC_TEST", "IKCONFIG"),
)
"""What nodes have no use for; without it the build takes a third of the time."""

LOCAL_VERSION = "-tunnelbench"
"""Follows the version, as in `6.1.176-tunnelbench`."""


def configuration(of_debian: str) -> str:
    """What to give to `make olddefconfig`: all modules built in, with ADDED and without LEFT_OUT."""
    ours = {
        **{f"CONFIG_{name}": "y" for name in ("DEBUG_INFO_NONE", *ADDED)},
        **{f"CONFIG_{name}": "n" for name in (*LEFT_OUT, "LOCALVERSION_AUTO")},
        "CONFIG_LOCALVERSION": f'"{LOCAL_VERSION}"',
    }
    kept = [
        re.sub(r"=m$", "=y", line)
        for line in of_debian.splitlines()
        if (match := re.match(r"(?:# )?(CONFIG_\w+)[= ]", line)) and match[1] not in ours
    ]
    return "".join(f"{line}\n" for line in [*kept, *(f"{name}={value}" for name, value in ours.items())])


def enabled(text: str) -> frozenset[str]:
    """The names of all that a configuration has, built in or as a module, without `CONFIG_`."""
    return frozenset(re.findall(r"^CONFIG_(\w+)=[ym]$", text, re.MULTILINE))


def added(of_debian: str, finished: str) -> tuple[str, ...]:
    """What a finished configuration has and Debian's has not, in order of the names."""
    return tuple(sorted(enabled(finished) - enabled(of_debian)))


def missing(finished: str, wanted: Iterable[str] = ADDED) -> tuple[str, ...]:
    """Those of `wanted` that the finished configuration came to lack."""
    return tuple(sorted(set(wanted) - enabled(finished)))
