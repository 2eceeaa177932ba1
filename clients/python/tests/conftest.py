"""What the tests share: a real service, whose address and data folder are in the environment (scripts/test-python.ts)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from kith_client import Kith

ROOT = Path(__file__).parents[3]
ORGANIZATIONS = ("tests", "readme", "guide", "log", "warehouse")

_results: dict[str, str] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or report.outcome != "passed":
        _results[report.nodeid] = report.outcome


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """A file that is skipped as a whole."""
    if report.outcome == "skipped":
        _results[report.nodeid] = report.outcome


def pytest_sessionfinish(exitstatus: int) -> None:
    """The gate counts the tests of all its steps."""
    file = os.environ.get("TEST_SUMMARY_FILE")
    if not file or exitstatus > 1:
        return
    passed, failed, skipped = (sum(each == kind for each in _results.values()) for kind in ("passed", "failed", "skipped"))
    names = [name for name, outcome in _results.items() if outcome == "failed"]
    Path(file).write_text("\n".join([f"{passed} passed, {failed} failed, {skipped} skipped", *names, ""]))


@pytest.fixture(scope="session")
def url() -> str:
    return os.environ["KITH_URL"]


@pytest.fixture(scope="session")
def tokens() -> dict[str, str]:
    """A token of each organization."""
    command = ["node", "scripts/new-organizations.ts", *ORGANIZATIONS]
    made = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return dict(zip(ORGANIZATIONS, made.stdout.split(), strict=True))


@pytest.fixture(scope="session")
def token(tokens: dict[str, str]) -> str:
    """The token of the organization in which each test has names of its own."""
    return tokens["tests"]


@pytest.fixture
def kith(url: str, token: str) -> Iterator[Kith]:
    with Kith(url, token, retries=0) as client:
        yield client


@pytest.fixture
def orders(kith: Kith) -> str:
    """A stack of orders, with `total` and the `buyer`."""
    if "orders" not in [stack["key"] for stack in kith.api.list_stacks()]:
        kith.api.create_stack({"key": "orders", "kind": "item"})
        kith.api.create_attribute({"key": "total", "owner": "orders", "type": "number", "indexed": True})
        kith.api.create_attribute({"key": "buyer", "owner": "orders", "type": "person"})
    return "orders"


class Network(httpx.BaseTransport):
    """The network to the service, of which a test can break an exchange: `answers` are consumed by the requests in order.

    None lets the request through. `lost` lets it through and loses the response, `cut` breaks the response after some bytes, `refused` does not
    let it through, and a response is given in place of that of the service."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.requests = list(answers), list[httpx.Request]()
        self._inner = httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if self.answers else None
        if answer == "refused":
            raise httpx.ConnectError("refused", request=request)
        if isinstance(answer, httpx.Response):
            return answer
        response = self._inner.handle_request(request)
        if answer == "lost":
            response.read()
            raise httpx.ReadError("lost", request=request)
        if isinstance(answer, int):
            headers = {name: value for name, value in response.headers.items() if name != "content-length"}
            return httpx.Response(response.status_code, headers=headers, stream=_Cut(response, answer))
        return response

    def close(self) -> None:
        self._inner.close()


class _Cut(httpx.SyncByteStream):
    """A response that breaks after so many bytes."""

    def __init__(self, response: httpx.Response, length: int) -> None:
        self._response, self._left = response, length

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._response.iter_raw():
            yield chunk[: self._left]
            self._left -= len(chunk)
            if self._left <= 0:
                raise httpx.ReadError("cut")

    def close(self) -> None:
        self._response.close()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses before retries, which the tests do not wait for."""
    waited: list[float] = []
    for module in ("transport", "transfer", "entities", "changes"):
        monkeypatch.setattr(f"kith_client._sync.{module}.sleep", waited.append)
    return waited


@pytest.fixture
def flaky(url: str, token: str, pauses: list[float]) -> Iterator[Callable[..., tuple[Kith, Network]]]:
    """Clients whose network breaks as a test says."""
    clients: list[Kith] = []

    def create(*answers: Any, **options: Any) -> tuple[Kith, Network]:
        network = Network(*answers)
        clients.append(Kith(url, token, http=httpx.Client(transport=network), **options))
        return clients[-1], network

    yield create
    for client in clients:
        client.close()
