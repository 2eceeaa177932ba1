"""Which failed attempts are repeated, and after what time."""

from __future__ import annotations

import random
import time
from email.utils import parsedate_to_datetime

from .errors import KithConnectionError, KithError, KithException

FIRST_PAUSE = 0.2
MAX_PAUSE = 5.0
MAX_RETRY_AFTER = 30.0
"""The client does not retry if `Retry-After` is longer than this."""
MAX_RECONNECT_PAUSE = 3_600.0


def outcome_of(error: KithException) -> str:
    """`not_done`: the request had no effect. `unknown`: it may have been carried out. `final`: a retry would get the same response.

    A 503 is `unknown`, because the service also returns it if the database connection was lost during a commit. A 504 in kith's own
    format is `final`: the request took ten seconds and would take them again."""
    if isinstance(error, KithError):
        # An earlier attempt with the same Idempotency-Key is still running. The 409 of a taken name has another code.
        if error.status == 429 or (error.status == 409 and error.code == "invalid_parameter"):
            return "not_done"
        return "unknown" if error.status == 503 else "final"
    if not isinstance(error, KithConnectionError):
        return "final"
    if error.status == 429 or not error.was_sent:
        return "not_done"
    return "unknown" if error.status in (None, 502, 503, 504) else "final"


def pause_before(error: KithException, attempt: int, retries: int, is_repeatable: bool) -> float | None:
    """The pause before the next attempt in seconds: `Retry-After` and full jitter. None if there must be none."""
    outcome = outcome_of(error)
    if attempt > retries or outcome == "final" or (outcome == "unknown" and not is_repeatable):
        return None
    retry_after = error.retry_after or 0
    return None if retry_after > MAX_RETRY_AFTER else retry_after + jitter(attempt)


def pause_before_reconnect(error: KithException, attempt: int) -> float | None:
    """The pause before a follower connects again. None if the service refuses the request, because it would refuse every further one."""
    if not error.is_temporary:
        return None
    return min(MAX_RECONNECT_PAUSE, error.retry_after or 0) + jitter(attempt)


def jitter(attempt: int) -> float:
    return random.random() * min(MAX_PAUSE, FIRST_PAUSE * 2 ** min(attempt - 1, 10))


def seconds_until(header: str | None) -> float | None:
    """The seconds that a `Retry-After` header asks for, as a number or as a date. None if it is absent or invalid."""
    if header is None:
        return None
    if header.isdigit():
        return float(header)
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except ValueError:
        return None
