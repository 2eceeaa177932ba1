"""The examples of the documents run, one after the other, and print what their comments say."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from conftest import ROOT

DOCUMENTS = {"readme": "clients/python/README.md", "guide": "docs/python.md"}


def examples_of(document: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / document).read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("organization", "document"), DOCUMENTS.items())
def test_the_examples_print_what_they_say(
    organization: str, document: str, url: str, tokens: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KITH_URL", url)
    monkeypatch.setenv("KITH_TOKEN", tokens[organization])
    printed: list[str] = []
    namespace: dict[str, Any] = {"print": lambda *values: printed.append(" ".join(map(str, values)))}
    expected: list[str] = []
    for example in examples_of(document):
        exec(compile(example, document, "exec"), namespace)  # noqa: S102
        expected += re.findall(r"print\(.*\)  # (.*)$", example, re.MULTILINE)
    namespace["kith"].close()
    # A print in a loop prints several lines.
    assert len(expected) > 2 and " ".join(printed) == " ".join(expected)


def test_the_version_is_that_of_kith() -> None:
    version = json.loads((ROOT / "package.json").read_text())["version"]
    own = re.search(r'^version = "(.*)"$', (ROOT / "clients/python/pyproject.toml").read_text(), re.MULTILINE)
    assert own is not None and own[1] == re.sub(r"-(alpha|beta|rc)\.", lambda stage: {"alpha": "a", "beta": "b", "rc": "rc"}[stage[1]], version)


def test_the_syncs_of_the_change_log_apply_each_change_once(
    url: str, tokens: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KITH_URL", url)
    monkeypatch.setenv("KITH_TOKEN", tokens["log"])
    namespace: dict[str, Any] = {}
    for example in examples_of("docs/changes.md"):
        exec(compile(example, "docs/changes.md", "exec"), namespace)  # noqa: S102
    kith, state, applied = namespace["kith"], {}, []
    for name in ("ada", "bob"):
        kith.people.create({"external_id": name})
    namespace["sync_nightly"](state, lambda change: applied.append(change["external_id"]))
    namespace["sync_nightly"](state, lambda change: applied.append(change["external_id"]))
    assert applied == ["ada", "bob"] and state["after"] == 2

    def apply(change: Any) -> None:
        applied.append(change["external_id"])
        if change["external_id"] == "eve":
            raise InterruptedError

    kith.people.create({"external_id": "cy"})
    kith.people.create({"external_id": "eve"})
    with pytest.raises(InterruptedError):
        namespace["follow_changes"](state, apply)
    assert applied == ["ada", "bob", "cy", "eve"] and state["after"] == 3
    kith.close()
