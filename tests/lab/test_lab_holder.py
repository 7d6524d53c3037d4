"""Labs that are kept open: brought up, worked in and taken down by the commands, and what kills leave."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from lab_processes import command_line, descendants, runs, survivors
from typer.testing import CliRunner, Result

from tunnelbench.commands.lab import lab_app
from tunnelbench.errors import UserError
from tunnelbench.lab import rendezvous

pytestmark = pytest.mark.lab

COMMAND = [sys.executable, "-c", "from tunnelbench.commands.lab import lab_app; lab_app()"]
MEGABYTE = 1 << 20
HANGS_SECONDS = 180.0


def run(*arguments: str) -> Result:
    return CliRunner().invoke(lab_app, arguments)


def up(*arguments: str) -> dict[str, object]:
    """Brings a lab up and returns its description."""
    result = run("up", *arguments, "--json")
    assert result.exception is None, result.output
    return json.loads(result.stdout)


def execute(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """`lab exec` as a command of its own."""
    return subprocess.run(
        [*COMMAND, "exec", *arguments], input=given, capture_output=True, timeout=HANGS_SECONDS
    )


def processes_of(lab: dict[str, object]) -> list[int]:
    holder = lab["process_id"]
    assert isinstance(holder, int)
    return [holder, *descendants(holder)]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Generator[dict[str, object]]:
    """A lab named `lab`, with plain IP between its sites, in a runtime directory of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))
        description = up()
        yield description
        processes = processes_of(description)
        assert run("down").exit_code == 0
        assert survivors(processes) == []
        assert not rendezvous.runtime_directory().exists()


def test_the_iperf3_server_on_the_last_host_is_reached_by_name(lab: dict[str, object]) -> None:
    for version in ("-4", "-6"):
        done = execute("host1", "--", "iperf3", "-c", "host2", version, "-n", "1M", "--json")
        assert done.returncode == 0, done.stdout
        assert json.loads(done.stdout)["end"]["sum_received"]["bytes"] > 0


def test_its_description_says_what_it_is(lab: dict[str, object]) -> None:
    assert lab["tunnel"] == "open"
    assert str(lab["proof"]).startswith("proven: ")
    (listed,) = json.loads(run("list", "--json").stdout)
    assert listed == lab
    assert " open " in run("list").stdout


def test_streams_and_exit_codes_are_the_programs(lab: dict[str, object]) -> None:
    done = execute("gw1", "--", "sh", "-c", "cat; echo error >&2; exit 7", given=b"in\0put")
    assert (done.returncode, done.stdout, done.stderr) == (7, b"in\0put", b"error\n")
    assert execute("gw1", "--", "sh", "-c", "kill -KILL $$").returncode == 128 + signal.SIGKILL
    # Options after the node are the program's, with the separator or without.
    assert execute("gw1", "uname", "-n").stdout == b"gw1\n"


def test_much_data_arrives_whole_in_both_directions(lab: dict[str, object]) -> None:
    data = os.urandom(8 * MEGABYTE)
    done = execute("host1", "--", "sh", "-c", "tee /dev/stderr", given=data)
    wanted = hashlib.sha256(data).digest()
    assert hashlib.sha256(done.stdout).digest() == wanted
    assert hashlib.sha256(done.stderr).digest() == wanted


def test_a_reader_that_stops_reading_takes_no_memory(lab: dict[str, object]) -> None:
    with subprocess.Popen(
        [*COMMAND, "exec", "host1", "--", "sh", "-c", "echo $$; exec cat /dev/zero"], stdout=subprocess.PIPE
    ) as command:
        assert command.stdout is not None
        command.stdout.read(4 * MEGABYTE)
        time.sleep(1)
        for process in (command.pid, *processes_of(lab)):
            status = Path(f"/proc/{process}/status").read_text()
            most = re.search(r"VmHWM:\s+(\d+) kB", status)
            assert most is not None
            assert int(most[1]) < 128 << 10
        writers = programs(lab, "cat", "/dev/zero")
        assert len(writers) == 1
        # Whoever reads no more ends the program, as in any pipeline.
        command.stdout.close()
        assert command.wait(HANGS_SECONDS) == 128 + signal.SIGPIPE
    assert survivors(writers) == []


def test_signals_reach_a_program_that_reads_nothing(lab: dict[str, object]) -> None:
    with subprocess.Popen(
        [
            *COMMAND,
            "exec",
            "host1",
            "--",
            "sh",
            "-c",
            "trap 'exit 9' USR1; echo up; while :; do sleep 0.02; done",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as command:
        assert command.stdin is not None
        assert command.stdout is not None
        assert command.stdout.readline() == b"up\n"
        os.set_blocking(command.stdin.fileno(), False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(command.stdin.fileno(), bytes(MEGABYTE))
        command.send_signal(signal.SIGUSR1)
        assert command.wait(HANGS_SECONDS) == 9


def test_a_command_that_is_killed_hangs_up_on_its_program(lab: dict[str, object]) -> None:
    with subprocess.Popen(
        [*COMMAND, "exec", "host1", "--", "sh", "-c", "trap '' HUP; exec cat /dev/zero"],
        stdout=subprocess.PIPE,
    ) as command:
        assert command.stdout is not None
        command.stdout.read(MEGABYTE)
        writers = programs(lab, "cat", "/dev/zero")
        assert len(writers) == 1
        command.kill()
    assert survivors(writers) == []


def test_a_shell_has_a_terminal_that_follows_the_users(lab: dict[str, object]) -> None:
    process, terminal = pty.fork()
    if process == 0:
        os.execv(sys.executable, [*COMMAND, "shell", "host1"])
    resize(terminal, 30, 100)
    read_until(terminal, "host1:/# ")
    os.write(terminal, b"stty size\n")
    read_until(terminal, "30 100\r\n")
    resize(terminal, 50, 120)
    os.kill(process, signal.SIGWINCH)
    os.write(terminal, b"sleep 0.2; stty size\n")
    read_until(terminal, "50 120\r\n")
    os.write(terminal, b"sleep 1000\n")
    give_up = time.monotonic() + HANGS_SECONDS
    while not programs(lab, "sleep", "1000"):
        assert time.monotonic() < give_up, "no sleep"
        time.sleep(0.05)
    os.write(terminal, b"\x03")
    os.write(terminal, b"echo status $?; exit 5\n")
    read_until(terminal, "status 130\r\n")
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 5
    os.close(terminal)


def test_two_labs_of_different_names_are_up_at_once(lab: dict[str, object]) -> None:
    other = up("--name", "other", "--topology", "host-to-host", "--mtu", "1400")
    processes = processes_of(other)
    try:
        assert [one["name"] for one in json.loads(run("list", "--json").stdout)] == ["lab", "other"]
        shown = execute("--name", "other", "host2", "--", "cat", "/sys/class/net/wan/mtu")
        assert shown.stdout == b"1400\n"
    finally:
        assert run("down", "--name", "other").exit_code == 0
    # When the command returns, all is gone.
    assert [process for process in processes if runs(process)] == []
    assert execute("host1", "--", "true").returncode == 0


def test_a_holder_that_is_killed_takes_its_lab_along(lab: dict[str, object]) -> None:
    killed = up("--name", "killed", "--topology", "host-to-host", "--runtime", "kernel")
    processes = processes_of(killed)
    assert len(processes) > 6
    os.kill(processes[0], signal.SIGKILL)
    assert survivors(processes) == []
    socket = rendezvous.runtime_directory() / "killed.sock"
    assert socket.exists()
    refused = run("exec", "--name", "killed", "host1", "true")
    assert isinstance(refused.exception, UserError)
    assert "no lab named killed is up" in str(refused.exception)
    assert not socket.exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["up"], "lab lab is up already"),
        (["up", "opne"], "Did you mean 'open'"),
        (["up", "ipsec-manual/*"], "name its suite"),
        (["up", "--topology", "site-to-sight"], "Did you mean 'site-to-site'"),
        (["up", "--runtime", "kernal"], "Did you mean 'kernel'"),
        (["up", "--name", "../../etc"], "can't name a lab"),
        (["up", "--name", "x", "--gateway-os", "no-such-image"], "image no-such-image is not built"),
        (["exec", "host3", "--", "true"], "The nodes are host1, gw1, gw2, host2"),
        (["exec", "host1", "--", "no-such-program"], "no-such-program could not be started"),
        (["down", "--name", "other"], "Labs that are up: lab"),
    ],
)
def test_mistakes_are_told_with_advice(lab: dict[str, object], arguments: list[str], complaint: str) -> None:
    refused = run(*arguments)
    assert isinstance(refused.exception, UserError)
    assert complaint in str(refused.exception)


def test_a_lab_that_cannot_come_up_says_why_and_leaves_nothing(lab: dict[str, object]) -> None:
    before = set(descendants(os.getpid()))
    refused = run("up", "--name", "x", "--mtu", "100")
    assert isinstance(refused.exception, UserError)
    assert "Traceback" not in str(refused.exception)
    assert set(descendants(os.getpid())) <= before
    assert "x" not in rendezvous.open_labs()


def programs(lab: dict[str, object], *arguments: str) -> list[int]:
    """The processes of the lab that run a program with these arguments."""
    return [process for process in processes_of(lab) if command_line(process) == list(arguments)]


def resize(terminal: int, rows: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def read_until(terminal: int, wanted: str) -> None:
    seen = b""
    deadline = time.monotonic() + HANGS_SECONDS
    while wanted.encode() not in seen:
        readable, _, _ = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))
        assert readable, f"no {wanted!r} in {seen!r}"
        seen += os.read(terminal, 4096)
