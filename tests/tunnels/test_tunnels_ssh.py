"""What ends of SSH connections said in real labs, what that means, and what can't be asked of them."""

from __future__ import annotations

import subprocess

import pytest

from tunnelbench.lab.topology import Family
from tunnelbench.tunnels import all_tunnels
from tunnelbench.tunnels.base import Place, Tunnel
from tunnelbench.tunnels.ssh_log import Log
from tunnelbench.tunnels.ssh_read_back import read_log, read_logs

CBC = """\
debug1: kex: algorithm: sntrup761x25519-sha512
debug1: kex: host key algorithm: ssh-ed25519
debug1: kex: server->client cipher: aes128-cbc MAC: hmac-md5 compression: none
debug1: kex: client->server cipher: aes128-cbc MAC: hmac-md5 compression: none
debug1: expecting SSH2_MSG_KEX_ECDH_REPLY
Authenticated to 192.168.0.2 ([192.168.0.2]:22) using "publickey".
debug1: ssh_tun_confirm: tunnel forward established, id=0
"""
AEAD = """\
debug1: kex: server->client cipher: aes128-gcm@openssh.com MAC: <implicit> compression: none
debug1: kex: client->server cipher: aes128-gcm@openssh.com MAC: <implicit> compression: none
debug1: Entering interactive session.
"""
SSHD = """\
debug1: kex: algorithm: sntrup761x25519-sha512 [preauth]
debug1: kex: client->server cipher: aes128-cbc MAC: hmac-md5 compression: none [preauth]
debug1: kex: server->client cipher: aes128-cbc MAC: hmac-md5 compression: none [preauth]
debug1: expecting SSH2_MSG_KEX_ECDH_INIT [preauth]
"""
SSH1 = """\
OpenSSH_7.5p1 Debian-17, OpenSSL 3.5.7 9 Jun 2026
debug1: Local version string SSH-2.0-OpenSSH_7.5p1 Debian-17
debug1: Remote protocol version 2.0, remote software version AsyncSSH_2.20.0
debug1: kex: algorithm: curve25519-sha256
debug1: kex: host key algorithm: ssh-ed25519
debug1: kex: server->client cipher: blowfish-cbc MAC: hmac-sha1-etm@openssh.com compression: zlib@openssh.com
debug1: kex: client->server cipher: blowfish-cbc MAC: hmac-sha1-etm@openssh.com compression: zlib@openssh.com
"""
ASYNCSSH = """\
Server listening on 192.168.0.2 port 22, AsyncSSH 2.20.0.
kex: client->server cipher: blowfish-cbc MAC: hmac-sha1-etm@openssh.com compression: zlib@openssh.com
kex: server->client cipher: blowfish-cbc MAC: hmac-sha1-etm@openssh.com compression: zlib@openssh.com
[conn=0] Completed key exchange
[conn=0] Accepted layer 3 tunnel request to unit 0
"""
CHOSEN_9_2 = """\
debug1: kex.c:kex_exchange_identification():1347 (pid=11): Local version string SSH-2.0-OpenSSH_9.2p1 Debian-2
debug1: kex.c:choose_kex():929 (pid=11): kex: algorithm: sntrup761x25519-sha512
debug1: kex.c:kex_choose_conf():1091 (pid=11): kex: server->client cipher: aes128-cbc MAC: hmac-md5 compression: none
debug1: kex.c:kex_choose_conf():1091 (pid=11): kex: client->server cipher: aes128-cbc MAC: hmac-md5 compression: none
sshconnect2.c:ssh_userauth2():580 (pid=11): Authenticated to 192.168.0.2 ([192.168.0.2]:22) using "publickey".
"""  # noqa: E501
CHOSEN_10_0 = """\
debug1: kex.c:kex_choose_conf():1030 (bin=sshd-auth, pid=20): kex: client->server cipher: aes128-cbc MAC: hmac-md5 compression: none [preauth]
debug1: kex.c:kex_choose_conf():1030 (bin=sshd-auth, pid=20): kex: server->client cipher: aes128-cbc MAC: hmac-md5 compression: none [preauth]
"""  # noqa: E501
VPNS = [tunnel for name, tunnel in all_tunnels().items() if name.startswith("ssh-")]


def test_both_ends_say_the_suite_and_the_client_who_they_are() -> None:
    said = read_logs(SSH1, ASYNCSSH)
    assert said.suite == "blowfish-cbc-sha1"
    assert said.facts == {
        "MAC": "hmac-sha1-etm@openssh.com",
        "compression": "zlib@openssh.com",
        "key exchange": "curve25519-sha256",
        "client": "OpenSSH_7.5p1 Debian-17",
        "server": "AsyncSSH_2.20.0",
    }
    assert read_logs(CBC, SSHD).suite == "aes128-cbc-md5"
    assert read_log(AEAD).suite == "aes128-gcm"


def test_lines_that_say_which_function_they_come_from_are_read_alike() -> None:
    said = read_logs(CHOSEN_9_2, CHOSEN_10_0)
    assert said.suite == "aes128-cbc-md5"
    assert said.facts["key exchange"] == "sntrup761x25519-sha512"
    assert said.facts["client"] == "OpenSSH_9.2p1 Debian-2"


def test_of_a_log_with_datagrams_only_their_lines_are_left_out() -> None:
    printed = [
        "debug1: channel 0: datagram too big",
        "SSH2_MSG_NEWKEYS received",
        "channel 0: rcvd too much data 84",
    ]
    command = Log(("LogLevel DEBUG1",), has_datagrams=True).command("printf", "%s\\n", *printed)
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == f"{printed[1]}\n"
    assert Log((), has_datagrams=False).command("ssh", "-N") == ("ssh", "-N")


def test_ends_that_differ_have_no_suite() -> None:
    assert read_logs(CBC, ASYNCSSH).suite is None
    assert read_logs(CBC, "").suite is None
    assert "compression" not in read_logs(SSH1, SSHD).facts


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("client->server cipher: aes128-cbc", "client->server cipher: aes256-cbc"),
        ("client->server", "somewhere"),
        ("hmac-md5", "hmac-ripemd160"),
        ("MAC: hmac-md5 compression: none\ndebug1: exp", "MAC: hmac-sha1 compression: none\ndebug1: exp"),
    ],
)
def test_what_is_no_suite_of_both_directions_is_none(first: str, second: str) -> None:
    assert read_log(CBC.replace(first, second)).suite is None


def test_the_newest_keys_count_and_only_they_are_told() -> None:
    assert read_log(CBC + AEAD).suite == "aes128-gcm"
    assert read_log(CBC + AEAD).text.splitlines() == AEAD.splitlines()[:2]


@pytest.mark.parametrize("tunnel", VPNS, ids=lambda tunnel: tunnel.name)
def test_an_aead_has_no_order_of_encryption_and_mac(tunnel: Tunnel) -> None:
    place = Place("trixie", "site-to-site")
    for suite in tunnel.suites.values():
        then = tunnel.variant(suite.name, {"mac-order": "encrypt-then-mac"})
        assert (tunnel.refusal(then, place) is None) == (suite.integrity != "with the cipher")
        assert tunnel.refusal(tunnel.variant(suite.name), place) is None


def test_blowfish_over_a_device_needs_a_new_asyncssh() -> None:
    tunnel = all_tunnels()["ssh-vpn"]
    refusal = tunnel.refusal(tunnel.variant("blowfish-cbc-sha1"), Place("bookworm", "site-to-site"))
    assert refusal
    assert "in trixie it does" in refusal


@pytest.mark.parametrize(
    ("suite", "levels", "client"),
    [
        ("cast128-cbc-sha512", {}, "ssh1 with Ciphers cast128-cbc, MACs hmac-sha2-512, Compression no"),
        (
            "aes192-ctr-md5",
            {"mac-order": "encrypt-then-mac", "compression": "zlib"},
            "ssh with Ciphers aes192-ctr, MACs hmac-md5-etm@openssh.com, Compression yes",
        ),
        ("chacha20-poly1305", {}, "ssh with Ciphers chacha20-poly1305@openssh.com, Compression no"),
    ],
)
def test_what_both_ends_must_agree_on_follows_from_suite_and_options(
    suite: str, levels: dict[str, str], client: str
) -> None:
    tunnel = all_tunnels()["ssh-port-forwarding"]
    needs = tunnel.needs(tunnel.variant(suite, levels, Family.IPV6))
    assert client in {feature.name for feature in needs.features}
