"""The credentials of a client."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class ClientCredentials:
    """Credentials from `kith client create`. `scope` requests fewer scopes than the client has, separated by spaces."""

    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None


def valid_token(token: str) -> str:
    """The token without white space around it. Raises ValueError, which does not quote it, if no token has such a character."""
    trimmed = token.strip()
    if not trimmed or not all("!" <= character <= "~" for character in trimmed):
        raise ValueError("the token is empty or contains a character that no token contains")
    return trimmed
