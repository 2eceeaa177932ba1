"""Sends requests, and repeats those that may be repeated."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from time import monotonic
from typing import Any

import httpx

from ..answers import Lines, page_of, parse, payload_of
from ..credentials import ClientCredentials, valid_token
from ..errors import KithConnectionError, KithError, KithException, KithTimeoutError, NotFound, error_of
from ..options import Request, headers_of, prepare
from ..retry import outcome_of, pause_before, seconds_until
from .io import Lock, TokenSource, call, sleep
from .listing import AsyncListing

logger = logging.getLogger("kith_client")

RENEWAL_SHARE = 0.8
"""A token is renewed when a fifth of its lifetime is left, so that it outlasts the slowest request."""

NDJSON = "application/x-ndjson"
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class AsyncTransport:
    """The connections to one service, with one set of credentials."""

    def __init__(
        self,
        url: str,
        *,
        token: str | TokenSource | ClientCredentials,
        timeout: float,
        retries: int,
        read_your_writes: bool,
        http: httpx.AsyncClient | None,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError("the url must begin with https:// or http://")
        self._base = url.rstrip("/")
        self._host = httpx.URL(url).netloc.decode()
        self._is_loopback = httpx.URL(url).host in LOOPBACK
        self._credentials = valid_token(token) if isinstance(token, str) else token
        self._timeout, self.retries, self._read_your_writes = timeout, retries, read_your_writes
        # A redirect could send a write to another host, or turn it into a GET.
        self._http = http or httpx.AsyncClient(follow_redirects=False)
        self._lock = Lock()
        self._current: tuple[str, float] | None = None
        self.newest_write: int | None = None

    async def aclose(self) -> None:
        await self._http.aclose()

    async def send(
        self,
        endpoint: str,
        params: Mapping[str, object],
        query: Mapping[str, object],
        body: object,
        options: Mapping[str, Any],
    ) -> Any:
        """Sends a request, repeats it if that is safe, and returns the payload of the response."""
        request = prepare(endpoint, params, query, body, options, self._newest())
        retries: int = options.get("retries", self.retries)
        attempt, answer_lost, renewed = 0, False, False
        while True:
            attempt += 1
            token: str | None = None
            was_sent = False
            try:
                if request.is_authorized:
                    token = request.headers["Authorization"] = f"Bearer {await self._token()}"
                was_sent = True
                return await self._send_once(request, attempt)
            except KithException as error:
                error.attempts = attempt
                if isinstance(error, KithError):
                    error.answer_lost = answer_lost
                # The deletion was done by an attempt whose response was lost. A dry run deletes nothing.
                if answer_lost and request.method == "DELETE" and not request.is_dry_run and isinstance(error, NotFound):
                    return True
                if was_sent and not renewed and self._discard(token, error):
                    renewed = True
                    continue
                # The write was done, or may have been. A retry without a key could misreport the outcome.
                may_be_done = isinstance(error, KithError) and error.outcome is not None
                is_repeatable = not was_sent or request.has_key or (request.is_repeatable and not may_be_done)
                pause = pause_before(error, attempt, retries, is_repeatable)
                if pause is None:
                    raise
                answer_lost = answer_lost or (was_sent and outcome_of(error) == "unknown")
            await sleep(pause)

    def listing(
        self,
        endpoint: str,
        params: Mapping[str, object],
        query: Mapping[str, object],
        options: Mapping[str, Any],
        size: int | None,
        after: str | None,
        *,
        by: str,
        limit: str,
        position: str | None,
    ) -> AsyncListing[Any]:
        """A list that a GET reads page by page: after the page before, by the parameter `by`."""

        async def read(following: str | None, is_first: bool) -> Any:
            paging = {limit: size, by: following} if by else {}
            return page_of(await self.send(endpoint, params, {**query, **paging}, None, options), position)

        return AsyncListing(read, after)

    async def lines(
        self,
        method: str,
        path: str,
        *,
        options: Mapping[str, Any],
        accept: str = NDJSON,
        content: bytes | None = None,
        content_type: str = "application/json",
        silence: float | None = None,
        on_response: Callable[[httpx.Headers], None] | None = None,
        renewed: bool = False,
    ) -> AsyncIterator[bytes]:
        """The lines of a response as they arrive. `silence` is the longest time between two of them in seconds."""
        headers = headers_of(options, self._newest(), f"{accept}, application/json")
        token = headers["Authorization"] = f"Bearer {await self._token()}"
        if content is not None:
            headers["Content-Type"] = content_type
        if self._is_loopback:
            # To compress lines takes longer than to send them over loopback.
            headers["Accept-Encoding"] = "identity"
        first: float = options.get("timeout", self._timeout)
        timeout = httpx.Timeout(first, read=max(first, silence or 0))
        url, lines, started = self._base + path, Lines(), monotonic()
        try:
            async with self._http.stream(method, url, headers=headers, content=content, timeout=timeout) as response:
                logger.debug("%s %s: %d after %.3f s", method, path, response.status_code, monotonic() - started)
                if response.status_code >= 400 or not response.headers.get("content-type", "").startswith(accept):
                    payload_of(response.status_code, response.headers, await response.aread())
                    raise KithConnectionError("The response is not a stream. Check the url.", status=response.status_code)
                if on_response:
                    on_response(response.headers)
                async for chunk in response.aiter_bytes():
                    for line in lines.feed(chunk):
                        yield line
                if lines.rest:
                    raise KithConnectionError("The response ended before the end of its last line.")
                return
        except httpx.RequestError as error:
            raise self._failure(error) from error
        except KithError as error:
            if renewed or not self._discard(token, error):
                raise
        again = self.lines(
            method,
            path,
            options=options,
            accept=accept,
            content=content,
            content_type=content_type,
            silence=silence,
            on_response=on_response,
            renewed=True,
        )
        async for line in again:
            yield line

    def note_write(self, sequence: int) -> None:
        self.newest_write = max(self.newest_write or 0, sequence)

    def _newest(self) -> int | None:
        return self.newest_write if self._read_your_writes else None

    async def _send_once(self, request: Request, attempt: int) -> Any:
        started, status, timeout = monotonic(), 0, request.options.get("timeout", self._timeout)
        try:
            response = await self._http.request(
                request.method,
                self._base + request.path,
                headers=request.headers,
                content=request.content,
                timeout=httpx.Timeout(timeout, read=timeout + request.wait),
            )
            status = response.status_code
            sequence = response.headers.get("x-kith-sequence", "")
            if sequence.isdigit():
                self.note_write(int(sequence))
            return payload_of(status, response.headers, response.content)
        except httpx.RequestError as error:
            raise self._failure(error) from error
        finally:
            # Paths contain identifiers, which may be personal data: hence no level above this one.
            seconds = monotonic() - started
            logger.debug("%s %s: %s after %.3f s, attempt %d", request.method, request.path, status, seconds, attempt)

    def _failure(self, error: httpx.RequestError) -> KithConnectionError:
        was_sent = not isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout))
        if isinstance(error, httpx.TimeoutException):
            return KithTimeoutError(f"{self._host} did not respond in time.", was_sent=was_sent)
        return KithConnectionError(f"{self._host} cannot be reached, or the connection broke: {error}", was_sent=was_sent)

    async def _token(self) -> str:
        credentials = self._credentials
        if isinstance(credentials, str):
            return credentials
        if not isinstance(credentials, ClientCredentials):
            return valid_token(await call(credentials))
        async with self._lock:
            if self._current is None or monotonic() >= self._current[1]:
                self._current = await self._fetch_token(credentials)
            return self._current[0]

    def _discard(self, token: str | None, error: KithException) -> bool:
        """Whether the error is the refusal of a token that can be fetched anew. A request that gets 401 had no effect."""
        if not isinstance(self._credentials, ClientCredentials) or token is None:
            return False
        if not isinstance(error, KithError) or error.status != 401:
            return False
        if self._current is not None and token == f"Bearer {self._current[0]}":
            self._current = None
        return True

    async def _fetch_token(self, credentials: ClientCredentials) -> tuple[str, float]:
        started = monotonic()
        form = {
            "grant_type": "client_credentials",
            "client_id": credentials.client_id,
            "client_secret": credentials.client_secret,
            **({"scope": credentials.scope} if credentials.scope else {}),
        }
        try:
            response = await self._http.post(f"{self._base}/oauth/token", data=form, timeout=self._timeout)
        except httpx.RequestError as error:
            raise self._failure(error) from error
        body, status = parse(response.content), response.status_code
        if status == 200 and body is not None and isinstance(body.get("access_token"), str):
            return body["access_token"], started + float(body.get("expires_in", 300)) * RENEWAL_SHARE
        retry_after = seconds_until(response.headers.get("retry-after"))
        # The errors of RFC 6749, 5.2 have their own format. 429 and 503 have kith's.
        message = body and body.get("error_description", body.get("message"))
        if not isinstance(message, str):
            text = f"The response of POST /oauth/token is not from kith: it has status {status}. Check the url."
            raise KithConnectionError(text, status=status, retry_after=retry_after)
        code = "rate_limit_exceeded" if status == 429 else "operation_failed" if status >= 500 else "unauthorized"
        request_id = response.headers.get("x-request-id")
        raise error_of(status, {"error": code, "message": message, "request_id": request_id}, retry_after)
