"""What Nebula daemons answered in real labs, and which cipher that proves."""

from __future__ import annotations

import dataclasses

import pytest

from tunnelbench.tunnels.nebula import handshake_seconds
from tunnelbench.tunnels.nebula_noise import Probe

AES_ASKED = Probe(
    static_key=bytes.fromhex("53e03e1505858c2e72a8d1dae867af45e1f8acda1b2c11b9b323d3a8495b1900"),
    certificate=bytes.fromhex(
        "0a630a0661736b696e6712098380fc57f8ffffff0f28e28587d80630e1ec8be7063a20cab77217bc"
        "8e7c3d6dc204a9cd7e1a97af19bdae1cd777a8a444432562dbef0b4a2038c352be800dc493395909"
        "c496ced774ba879d8160f6b379237ce8707e824039124078861ddf1cc88c7208aabf954d879449c1"
        "f6561dc7a7d2d6823ea4e6aeb6886412e897283fd0bac71eabee19e31c2b198c4528bc111ef029ae"
        "230e45b0201f04"
    ),
    ephemeral_key=bytes.fromhex("98110bc010a939ae4e4e501816fb2c7a7d4ee46305b88aa38d0c5c7f4861c74e"),
    nanoseconds=1_795_277_538_899_043_968,
)
AES_ANSWERED = bytes.fromhex(
    "100000000000000100000000000000024d92ae1f64306df4c3b32b9427a0d7a86927d5df1781fefe"
    "72b7639877a0fc2134a9bac65f9af1b99c2e40c76a4c9b0c6931aedd2f19d032b1b3bd98d0eb0822"
    "74b6b3a707c1dd6c3874546a4c718628523839c1184caa533459b425d7df020e"
)
CHACHA_ASKED = Probe(
    static_key=bytes.fromhex("bc869757ea3f537353edf42c85c39bb7abf37960859aaca19b7d694b0baee02c"),
    certificate=bytes.fromhex(
        "0a630a0661736b696e6712098380fc57f8ffffff0f28f48587d80630f3ec8be7063a200c6c95d689"
        "ace4de702b39e3e0e5300aeda87485663c3c76f5653001e9a21d1e4a20dad13a3adbb8cf988e7303"
        "4dc7f31fef51928372fe4237d09f5a2ab1b4840ec512403e7904a95efdec2c5966447025f5efaffa"
        "51caadec9c272eb3cfef5fa3f03a33eba70cbdae33cf374a9a42d748d5037a13d24d6f8f11265c48"
        "be567c68ffda0f"
    ),
    ephemeral_key=bytes.fromhex("085bf6c22dab6447ca9ff20919152af010045bfca2c47b6c4088885622f5f37b"),
    nanoseconds=1_795_277_556_535_527_139,
)
CHACHA_ANSWERED = bytes.fromhex(
    "10000000000000010000000000000002e1ca7cd0ff537ac532a3e888e88435360fea794fa54ef591"
    "7a5fbca530b1384ce1d6506a2703a04f502a00b05e52d86997666eb5257287c3a0b43d31db1c9275"
    "39b5edeb49302b588ecbdf1ab158660876ea64ef959828f40b7a1cc828e3e647"
)

CALLED = (
    '{"certName":"gw2","durationNs":1544086,"handshake":{"stage":2,"style":"ix_psk0"},"level":"info",'
    '"msg":"Handshake message received","vpnIp":"10.255.0.2"}'
)


def test_the_cipher_is_the_one_that_opens_the_answer() -> None:
    assert AES_ASKED.cipher(AES_ANSWERED) == "aes256-gcm"
    assert CHACHA_ASKED.cipher(CHACHA_ANSWERED) == "chacha20-poly1305"


@pytest.mark.parametrize(
    "answer", [CHACHA_ANSWERED, AES_ANSWERED[:95], b"", AES_ANSWERED[:60] + b"!" + AES_ANSWERED[61:]]
)
def test_what_nothing_opens_proves_no_cipher(answer: bytes) -> None:
    assert AES_ASKED.cipher(answer) is None


def test_another_handshake_opens_nothing() -> None:
    later = dataclasses.replace(AES_ASKED, nanoseconds=AES_ASKED.nanoseconds + 1)
    assert later.request != AES_ASKED.request
    assert later.cipher(AES_ANSWERED) is None


def test_each_handshake_has_a_key_of_its_own() -> None:
    first, second = (Probe(AES_ASKED.static_key, AES_ASKED.certificate) for _ in range(2))
    assert first.ephemeral_key != second.ephemeral_key


def test_the_end_that_called_says_how_long_the_handshake_took() -> None:
    assert handshake_seconds(CALLED) == pytest.approx(0.001544086)
    assert handshake_seconds("") is None
