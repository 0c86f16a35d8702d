"""``pytest --at-least tests/spark=500``: a run fails when fewer tests of that folder passed.

So no missing package and no wrong selection goes unnoticed.
"""

from __future__ import annotations

import pytest

HELP = "fail unless at least N tests of FOLDER have passed"


class AtLeast:
    def __init__(self, folder: str, wanted: int) -> None:
        self.folder = folder.rstrip("/") + "/"
        self.wanted = wanted
        self.passed = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.passed += report.when == "call" and report.passed and report.nodeid.startswith(self.folder)

    @property
    def is_missed(self) -> bool:
        return self.passed < self.wanted

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self.is_missed and exitstatus == pytest.ExitCode.OK and not hasattr(session.config, "workerinput"):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        text = f"{self.passed} tests of {self.folder} passed, at least {self.wanted} wanted"
        terminalreporter.write_line(text, red=self.is_missed)
