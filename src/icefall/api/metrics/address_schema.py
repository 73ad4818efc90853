"""Bodies and results of lists of addresses."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from icefall.api.http.structs import Page

QUERIES_MAX = 10
Text = Annotated[str, Meta(min_length=1, max_length=128)]
QueryDay = Annotated[str, Meta(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
AmountText = Annotated[str, Meta(pattern="^[0-9]{1,78}$")]
ContractText = Annotated[str, Meta(pattern="^0x[0-9a-fA-F]{40}$")]
QueryTime = Annotated[int, Meta(ge=0, le=2**32 - 1)]


class QueryParams(Struct, frozen=True, rename="camel"):
    """What a question is about; which of them it needs depends on its type."""

    evm_chain_id: Text | None = None
    contract_address: ContractText | None = None
    min_balance: AmountText | None = None
    token_type: Text | None = None
    first_date: QueryDay | None = None
    last_date: QueryDay | None = None
    start_ts: QueryTime | None = None
    end_ts: QueryTime | None = None


class AddressQuery(Struct, frozen=True):
    """One question."""

    id: Text
    type: Text
    params: QueryParams


class CompositeQuery(Struct, frozen=True, rename="camel"):
    """Several questions, whose answers are put together."""

    queries: Annotated[list[AddressQuery], Meta(min_length=1, max_length=QUERIES_MAX)]
    operator: Literal["AND", "OR"]
    page_token: Annotated[str, Meta(max_length=512)] = ""
    page_size: Annotated[int, Meta(ge=1, le=5000)] = 1000


class CompositeAnswer(Page, frozen=True, kw_only=True):
    sub_query_counts: dict[str, int]
    total_count: int
    addresses: list[str]
