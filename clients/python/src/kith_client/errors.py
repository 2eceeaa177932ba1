"""The errors of the client. Distinguish those of the service by their class or `code`, not by their status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .models import Detail, ErrorCode


class KithException(Exception):
    """A call failed: the service refused it, or there was no response."""

    attempts = 1
    """How many times the request was sent."""
    retry_after: float | None = None
    """The value of `Retry-After`, in seconds."""

    @property
    def is_temporary(self) -> bool:
        """Whether the same call can succeed later. A write may have been carried out nevertheless."""
        return True


class KithError(KithException):
    """The service refused the request or failed. Each code has a class of its own."""

    answer_lost = False
    """Whether the response to an earlier attempt of this call was lost, so that the attempt may have been carried out. A 412 or
    `DuplicateEntry` may then result from this call's own write."""

    def __init__(self, status: int, body: Mapping[str, Any], *, retry_after: float | None = None) -> None:
        self.code: ErrorCode = body["error"]
        self.status = status
        self.details: list[Detail] = body.get("details") or []
        """The invalid values and their errors. `path` is a JSON Pointer into the body."""
        self.sentence: str = body.get("message") or self.code
        """The message of the service, without the details."""
        self.request_id: str | None = body.get("request_id")
        """Under it the operator of the service finds the request in the log."""
        self.errorstack: dict[str, str] | None = body.get("errorstack")
        """The reason of a failure. None for statuses below 500."""
        self.outcome: str | None = body.get("outcome")
        """`unknown` if the write may have been done. `done` if it was done and only its response is missing."""
        self.reason: str | None = body.get("reason")
        """`erased` if a value belonged to a person who was erased."""
        self.retry_after = retry_after
        super().__init__(self._text())

    def _text(self) -> str:
        if not self.details:
            return self.sentence
        path, message = self.details[0]["path"], self.details[0]["message"]
        if self.code == "not_found" and path == "":
            return f"{self.sentence} Check the url of the client."
        more = f"; and {len(self.details) - 1} more" if len(self.details) > 1 else ""
        return f"{self.sentence.removesuffix('.')} ({f'at {path}: ' if path else ''}{message}{more})"

    @property
    def is_temporary(self) -> bool:
        # A PATCH of a missing person is `not_found` with status 500.
        return self.status == 429 or (self.status >= 500 and self.code != "not_found")


class FailedBindingJson(KithError):
    """The body is not JSON."""


class InvalidJson(KithError):
    """A field of the body has the wrong type."""


class InvalidParameter(KithError):
    """A value breaks a rule. Also a version that is not the one of `if_match` (status 412)."""


class Unauthorized(KithError):
    """The token is missing, expired or revoked."""


class Forbidden(KithError):
    """The token lacks a scope, or its role does not open a field."""


class NotFound(KithError):
    """The entity, the stack or the address does not exist: `missing` says which."""

    @property
    def missing(self) -> str:
        """`address` if the service has no such endpoint (check the url), `stack` if it has no such stack, else `entity`."""
        path = self.details[0]["path"] if self.details else "/"
        return {"": "address", "/stack_key": "stack"}.get(path, "entity")


class DuplicateEntry(KithError):
    """The external identifier or a unique value is taken."""


class RateLimitExceeded(KithError):
    """Too many requests. No work was done."""


class OperationFailed(KithError):
    """The service failed or is overloaded."""


class KithImportError(KithError):
    """The service could not continue an import. The first `lines` lines are done: continue with `skip=error.lines`."""

    def __init__(self, body: Mapping[str, Any], lines: int) -> None:
        super().__init__(200, body)
        self.lines = lines

    @property
    def is_temporary(self) -> bool:
        # An import of too many refused lines would end again. Every other end has a passing cause.
        return self.code != "invalid_parameter"


class KithConnectionError(KithException):
    """The service could not be reached, the connection broke, or something else, such as a proxy, responded."""

    def __init__(
        self, message: str, *, status: int | None = None, retry_after: float | None = None, was_sent: bool = True
    ) -> None:
        super().__init__(message)
        self.status = status
        """The status of a response that is not from kith. None if there was no response."""
        self.retry_after = retry_after
        self.was_sent = was_sent
        """False if the request surely did not reach the service."""

    @property
    def is_temporary(self) -> bool:
        return self.status is None or self.status == 429 or self.status >= 500


class KithTimeoutError(KithConnectionError):
    """There was no response within `timeout`. A write may have been carried out."""


class WebhookVerificationError(Exception):
    """The request is not from the webhook, was changed on its way, or is older than five minutes. Answer it with 401."""


class ReceiptError(Exception):
    """A receipt that proves nothing. `part` is the member that is wrong, `receipt` for the whole, `key` or `text` for what was given."""

    def __init__(self, part: str, message: str) -> None:
        super().__init__(message)
        self.part = part


_CLASSES: dict[str, type[KithError]] = {
    "failed_binding_json": FailedBindingJson,
    "invalid_json": InvalidJson,
    "invalid_parameter": InvalidParameter,
    "unauthorized": Unauthorized,
    "forbidden": Forbidden,
    "not_found": NotFound,
    "duplicate_entry": DuplicateEntry,
    "rate_limit_exceeded": RateLimitExceeded,
    "operation_failed": OperationFailed,
}


def error_of(status: int, body: Mapping[str, Any], retry_after: float | None) -> KithError:
    return _CLASSES.get(body["error"], KithError)(status, body, retry_after=retry_after)
