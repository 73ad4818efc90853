"""Processes of the program, forked from one that has imported everything already: to import the program anew takes
longer than most tests do. The tests of `make up`, README and the command line start it as a user would."""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.waiting import LIMIT_S

# A process has one such server, and the last list that is set counts: nothing else may set one.
_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(
    [
        "tests.imported",
        "tests.evm.filling_crash",
        "tests.evm.index_crash",
        "tests.evm.liars.follow",
        "tests.pchain.stored_history",
        "tests.sync.crash",
        "tests.sync.dag_crash",
        "tests.xchain.stored",
    ]
)


def started(run: Callable[..., None], *arguments: object) -> BaseProcess:
    process = _forks.Process(target=_run_here, args=(run, arguments, dict(os.environ)), daemon=True)
    process.start()
    return process


def exit_code_of(run: Callable[..., None], *arguments: object) -> int:
    """Of a run that may kill itself: 0, or -SIGKILL."""
    process = started(run, *arguments)
    process.join(LIMIT_S)
    code = process.exitcode
    process.kill()
    assert code in (0, -signal.SIGKILL), "standard error says why"
    return int(code)


def _run_here(run: Callable[..., None], arguments: tuple[object, ...], environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    random.seed()  # else all of them would draw the same
    run(*arguments)


class ForkedProgram:
    """A running `icefall`, as subprocess.Popen would show it. What it prints goes to the ends of files."""

    def __init__(
        self,
        *arguments: str,
        output: Path,
        errors: Path | None = None,
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        variables = dict(os.environ if environment is None else environment)
        files = output, errors or output
        self._process = _forks.Process(target=_run_program, args=(arguments, files, variables, cwd or Path.cwd()))
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float = LIMIT_S) -> int:
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired("icefall", timeout)
        return code

    def send_signal(self, number: int) -> None:
        if self._process.exitcode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def run_program(
    *arguments: str, environment: Mapping[str, str] | None = None, cwd: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    """A run that is expected to end by itself."""
    with tempfile.TemporaryDirectory() as folder:
        output, errors = Path(folder) / "output", Path(folder) / "errors"
        program = ForkedProgram(*arguments, output=output, errors=errors, environment=environment, cwd=cwd)
        try:
            code = program.wait()
        except subprocess.TimeoutExpired:
            program.send_signal(signal.SIGTERM)
            program.wait()
            raise AssertionError(f"went on running: {output.read_text()}{errors.read_text()}") from None
        return subprocess.CompletedProcess(arguments, code, output.read_text(), errors.read_text())


def _run_program(
    arguments: tuple[str, ...],
    files: tuple[Path, Path],
    environment: dict[str, str],
    cwd: Path,
) -> None:
    for number, path in enumerate((Path(os.devnull), *files)):
        with path.open("ab" if number else "rb") as file:
            os.dup2(file.fileno(), number)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(cwd)
    sys.argv = ["icefall", *arguments]
    from icefall.cli import main

    sys.exit(main())
