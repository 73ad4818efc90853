"""Parameters, bodies and results of the webhook endpoints."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from icefall.api.http.rest_params import PageSize, PageToken, RestParamType, one_of
from icefall.api.http.structs import InvalidValue, Page, RestParams, RestResult

EventType = Literal["address_activity", "primary_network_address_activity", "validator_activity"]
StatusWord = Literal["active", "inactive"]
NUMBER_MAX = 2**53 - 1  # what every client can write as a number
_ID_SIZE_MAX = 64


def _id(text: str) -> str:
    if not 1 <= len(text) <= _ID_SIZE_MAX or not text.isascii() or not text.isprintable():
        raise InvalidValue("the ID of a webhook")
    return text


WEBHOOK_ID = RestParamType(
    "webhook ID",
    _id,
    {"type": "string", "minLength": 1, "maxLength": _ID_SIZE_MAX},
    "11111111-2222-4333-8444-555555555555",
)
WebhookId = Annotated[str, WEBHOOK_ID]
MaybeStatus = Annotated[str | None, one_of("active", "inactive")]
MaybeMessageStatus = Annotated[str | None, one_of("pending", "delivered", "failed", "dropped")]

_NO_NUL = r"^[^\x00]*$"  # which no server can store in a text
Text = Annotated[str, Meta(max_length=1000, pattern=_NO_NUL)]
Url = Annotated[str, Meta(min_length=8, max_length=2048, pattern=_NO_NUL)]
Address = Annotated[str, Meta(pattern="^0x[0-9a-fA-F]{40}$")]
Topic = Annotated[str, Meta(pattern="^0x[0-9a-fA-F]{64}$")]
Addresses = Annotated[list[Address], Meta(min_length=1, max_length=20_000)]
Number = Annotated[int, Meta(ge=0, le=NUMBER_MAX)]
KeyType = Literal["addresses", "nodeId", "subnetId"]
AddressSubEvent = Literal["balance_change", "balance_threshold", "reward_distribution"]
ValidatorSubEvent = Literal[
    "validator_stake",
    "delegator_stake",
    "reward_distribution",
    "l1_validator_balance_increased",
    "l1_validator_disabled",
    "l1_validator_removed",
    "l1_validator_balance_threshold",
]
BalanceType = Literal[
    "unlockedUnstaked",
    "unlockedStaked",
    "lockedPlatform",
    "lockedStakeable",
    "lockedStaked",
    "pendingStaked",
    "unlocked",
    "locked",
    "atomicMemoryUnlocked",
    "atomicMemoryLocked",
]
MessageId = Annotated[str, Meta(max_length=_ID_SIZE_MAX, pattern=_NO_NUL)]
Key = Annotated[str, Meta(min_length=1, max_length=128)]
Amount = Annotated[str, Meta(pattern="^[0-9]{1,20}$")]
Ids = Annotated[list[Key], Meta(min_length=1, max_length=100)]


class WebhookParams(RestParams, frozen=True):
    id: WebhookId


class WebhooksParams(RestParams, frozen=True):
    status: MaybeStatus = None
    page_size: PageSize = 10
    page_token: PageToken = ""


class WebhookAddressesParams(RestParams, frozen=True):
    id: WebhookId
    page_size: PageSize = 10
    page_token: PageToken = ""


class WebhookMessagesParams(RestParams, frozen=True):
    id: WebhookId
    status: MaybeMessageStatus = None
    page_size: PageSize = 10
    page_token: PageToken = ""


class WebhookBody(Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of bodies. Fields that are not known are ignored, as the hosted service does."""


class WantedSubEvents(WebhookBody, frozen=True, kw_only=True):
    address_activity_sub_events: list[AddressSubEvent] | UnsetType = UNSET
    validator_activity_sub_events: list[ValidatorSubEvent] | UnsetType = UNSET


class ThresholdFilter(WebhookBody, frozen=True, kw_only=True):
    balance_type: BalanceType
    balance_threshold: Amount


class ActivityFilter(WebhookBody, frozen=True, kw_only=True):
    addresses: Addresses | UnsetType = UNSET
    event_signatures: Annotated[list[Topic], Meta(max_length=100)] | UnsetType = UNSET
    key_type: KeyType | UnsetType = UNSET
    keys: Annotated[list[Key], Meta(min_length=1, max_length=20_000)] | UnsetType = UNSET
    sub_events: WantedSubEvents | UnsetType = UNSET
    balance_threshold_filter: ThresholdFilter | UnsetType = UNSET
    node_ids: Ids | UnsetType = UNSET
    subnet_ids: Ids | UnsetType = UNSET
    l1_validator_fee_balance_threshold: Amount | UnsetType = UNSET


class CreateWebhook(WebhookBody, frozen=True, kw_only=True):
    event_type: EventType
    url: Url
    network: Annotated[str, Meta(min_length=1, max_length=64)] | UnsetType = UNSET
    chain_id: Annotated[str, Meta(min_length=1, max_length=128)] | UnsetType = UNSET
    metadata: ActivityFilter
    name: Text = ""
    description: Text = ""
    include_internal_txs: bool = False
    include_logs: bool = False
    confirmations: Annotated[int, Meta(ge=0, le=100_000)] = 0
    ordered: bool = False
    start_block: Number | UnsetType = UNSET


class UpdateWebhook(WebhookBody, frozen=True, kw_only=True):
    name: Text | UnsetType = UNSET
    description: Text | UnsetType = UNSET
    url: Url | UnsetType = UNSET
    status: StatusWord | UnsetType = UNSET
    include_internal_txs: bool | UnsetType = UNSET
    include_logs: bool | UnsetType = UNSET


class AddressesChange(WebhookBody, frozen=True, kw_only=True):
    addresses: Addresses


class ReplayRequest(WebhookBody, frozen=True, kw_only=True):
    message_ids: Annotated[list[MessageId], Meta(min_length=1, max_length=1000)] | UnsetType = UNSET
    start_timestamp: Number | UnsetType = UNSET
    end_timestamp: Number | UnsetType = UNSET
    start_block: Number | UnsetType = UNSET
    end_block: Number | UnsetType = UNSET


class SubEvents(RestResult, frozen=True, kw_only=True):
    address_activity_sub_events: list[AddressSubEvent] | UnsetType = UNSET
    validator_activity_sub_events: list[ValidatorSubEvent] | UnsetType = UNSET


class BalanceThreshold(RestResult, frozen=True, kw_only=True):
    balance_type: BalanceType
    balance_threshold: str


class WebhookMetadata(RestResult, frozen=True, kw_only=True):
    """What a webhook is about: addresses on an EVM chain, or keys and sub-events on the primary network."""

    addresses: list[str] | UnsetType = UNSET
    event_signatures: list[str] | UnsetType = UNSET
    key_type: KeyType | UnsetType = UNSET
    keys: list[str] | UnsetType = UNSET
    sub_events: SubEvents | UnsetType = UNSET
    balance_threshold_filter: BalanceThreshold | UnsetType = UNSET
    node_ids: list[str] | UnsetType = UNSET
    subnet_ids: list[str] | UnsetType = UNSET
    l1_validator_fee_balance_threshold: str | UnsetType = UNSET


class WebhookResult(RestResult, frozen=True, kw_only=True):
    id: str
    event_type: EventType
    url: str
    chain_id: str
    status: StatusWord
    status_reason: str | UnsetType = UNSET
    created_at: int
    name: str
    description: str
    metadata: WebhookMetadata
    include_internal_txs: bool | UnsetType = UNSET
    include_logs: bool | UnsetType = UNSET
    confirmations: int
    ordered: bool
    start_block: str | UnsetType = UNSET


class WebhookPage(Page, frozen=True, kw_only=True):
    webhooks: list[WebhookResult]


class WebhookAddressPage(Page, frozen=True, kw_only=True):
    addresses: list[str]
    total_addresses: int


class SharedSecret(RestResult, frozen=True, kw_only=True):
    secret: str
    standard_secret: str


class WebhookAttempt(RestResult, frozen=True, kw_only=True):
    attempted_at: int
    response_code: int | UnsetType = UNSET
    duration_msecs: int
    error: str | UnsetType = UNSET


class WebhookMessage(RestResult, frozen=True, kw_only=True):
    message_id: str
    kind: Literal["activity", "removed", "test"]
    status: Literal["pending", "delivered", "failed", "dropped"]
    chain_id: str
    block_number: str | UnsetType = UNSET
    tx_hash: str | UnsetType = UNSET
    created_at: int
    next_attempt_at: int | UnsetType = UNSET
    attempts: list[WebhookAttempt]


class WebhookMessagePage(Page, frozen=True, kw_only=True):
    messages: list[WebhookMessage]


class WebhookMessageCounts(RestResult, frozen=True, kw_only=True):
    pending: int
    delivered: int
    failed: int
    dropped: int
    oldest_pending_at: int | UnsetType = UNSET


class ReplayResult(RestResult, frozen=True, kw_only=True):
    replayed: int


class SentTest(RestResult, frozen=True, kw_only=True):
    message_id: str
