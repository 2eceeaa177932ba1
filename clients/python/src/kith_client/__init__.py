"""The Python client of kith, a self-hosted contact and record data service."""

from ._async.changes import AsyncChanges, AsyncChangeStream
from ._async.client import AsyncKith
from ._async.entities import AsyncEntities
from ._async.listing import AsyncListing
from ._sync.changes import Changes, ChangeStream
from ._sync.client import Kith
from ._sync.entities import Entities
from ._sync.listing import Listing
from .addresses import Id, id_of
from .answers import Page
from .credentials import ClientCredentials
from .errors import (
    DuplicateEntry,
    FailedBindingJson,
    Forbidden,
    InvalidJson,
    InvalidParameter,
    KithConnectionError,
    KithError,
    KithException,
    KithImportError,
    KithTimeoutError,
    NotFound,
    OperationFailed,
    RateLimitExceeded,
    ReceiptError,
    Unauthorized,
    WebhookVerificationError,
)
from .progress import ImportResult
from .receipts import VerifiedReceipt, verify_receipt
from .webhooks import WebhookEvent, verify_webhook

__all__ = [
    "AsyncChangeStream",
    "AsyncChanges",
    "AsyncEntities",
    "AsyncKith",
    "AsyncListing",
    "ChangeStream",
    "Changes",
    "ClientCredentials",
    "DuplicateEntry",
    "Entities",
    "FailedBindingJson",
    "Forbidden",
    "Id",
    "ImportResult",
    "InvalidJson",
    "InvalidParameter",
    "Kith",
    "KithConnectionError",
    "KithError",
    "KithException",
    "KithImportError",
    "KithTimeoutError",
    "Listing",
    "NotFound",
    "OperationFailed",
    "Page",
    "RateLimitExceeded",
    "ReceiptError",
    "Unauthorized",
    "VerifiedReceipt",
    "WebhookEvent",
    "WebhookVerificationError",
    "id_of",
    "verify_receipt",
    "verify_webhook",
]
