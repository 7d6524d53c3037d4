"""Where gateways are placed, asked of real nodes about features whose answer is known."""

from __future__ import annotations

import os

import pytest
from lab_processes import descendants

from tunnelbench.lab.features import Feature, Needs
from tunnelbench.lab.image import Image, find
from tunnelbench.lab.lab import Runtime
from tunnelbench.lab.runtimes import place

pytestmark = pytest.mark.lab

ANYWHERE = Feature("ground", ("true",))
NOWHERE = Feature("wings", ("false",))
# User Mode Linux alone has a serial line of this kind.
IN_KERNELS = Feature("serial lines", ("test", "-c", "/dev/ttyS0"))
THROUGH_PROGRAMS = Feature("hoops", ("test", "-c", "/dev/ttyS0"), user_space=True)


def needs(*features: Feature, programs: tuple[str, ...] = ()) -> Needs:
    return Needs(frozenset(programs), frozenset(features))


WANTED = {
    "nothing": needs(),
    "anywhere": needs(ANYWHERE),
    "nowhere": needs(ANYWHERE, NOWHERE),
    "in kernels": needs(ANYWHERE, IN_KERNELS),
    "through programs": needs(THROUGH_PROGRAMS),
    "programs": needs(programs=("openvpn", "iperf3")),
    "no program": needs(ANYWHERE, programs=("openvpn", "no-such-vpn")),
}


async def test_each_is_placed_where_it_can_run_with_the_reason() -> None:
    image, before = find(), descendants(os.getpid())
    placed = await place(image, WANTED)
    assert {key: placement.runtime for key, placement in placed.items()} == {
        "nothing": Runtime.NAMESPACE,
        "anywhere": Runtime.NAMESPACE,
        "nowhere": None,
        "in kernels": Runtime.KERNEL,
        "through programs": Runtime.KERNEL,
        "programs": Runtime.NAMESPACE,
        "no program": None,
    }
    here, there = (
        f"this machine's kernel ({os.uname().release})",
        f"the image's kernel ({image.kernel_version})",
    )
    assert placed["anywhere"].reason == f"{here} has what it needs"
    assert placed["in kernels"].reason == f"{here} lacks serial lines; {there} has them"
    assert placed["nowhere"].reason.startswith(f"{here} lacks wings, and {there} lacks wings")
    assert "slows programs that handle packets down" in placed["through programs"].reason
    assert f"the image {image.name} lacks no-such-vpn" in placed["no program"].reason
    assert set(descendants(os.getpid())) <= set(before)


async def test_a_forced_runtime_is_kept_to() -> None:
    kernels = await place(find(), WANTED, Runtime.KERNEL)
    assert {key for key, placement in kernels.items() if placement.runtime is Runtime.KERNEL} == {
        *("nothing", "anywhere", "in kernels", "through programs", "programs"),
    }
    namespaces = await place(find(), WANTED, Runtime.NAMESPACE)
    assert {key for key, placement in namespaces.items() if placement.runtime is Runtime.NAMESPACE} == {
        *("nothing", "anywhere", "programs"),
    }
    assert "lacks serial lines" in namespaces["in kernels"].reason


async def test_a_kernel_that_does_not_boot_is_a_reason_not_a_failure() -> None:
    described = find().model_dump() | {"directory": find().directory, "kernel": "/usr/bin/false"}
    placed = await place(Image.model_validate(described), WANTED)
    assert placed["anywhere"].runtime is Runtime.NAMESPACE
    assert placed["in kernels"].runtime is None
    assert "the image's kernel could not be tried" in placed["in kernels"].reason
