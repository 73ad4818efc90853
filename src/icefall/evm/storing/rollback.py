"""Rolls back blocks. What they changed is found through their rows and their journal, so the cost does not depend on
the length of the chain."""

from icefall.db.engine import Transaction
from icefall.db.statements import load
from icefall.evm.encoding import above
from icefall.evm.storing import holders
from icefall.evm.storing.journal import TouchedAddresses, unpack_touched
from icefall.evm.storing.raw import roll_back_raw

SQL = load("icefall.evm.storing", "rollback.sql")

# In this order: lists are found through the rows they list.
_LISTS = (
    SQL.drop_erc20_in,
    SQL.drop_erc20_of,
    SQL.drop_erc721_of,
    SQL.drop_erc1155_of,
    SQL.drop_internal_of,
    SQL.drop_tx_by_hash,
    SQL.drop_native_of,
    SQL.drop_touch_of,
    SQL.drop_erc20_balance,
    SQL.drop_erc1155_balance,
    SQL.drop_nft,
    SQL.drop_deployed_by,
)
_ROWS = (
    SQL.drop_deployment,
    SQL.drop_message,
    SQL.drop_erc20,
    SQL.drop_erc721,
    SQL.drop_erc1155,
    SQL.drop_internal,
    SQL.drop_tx,
    SQL.drop_block,
    SQL.drop_token,
    SQL.drop_audit,
    SQL.drop_state_owner,
)


def roll_back_above(tx: Transaction, ancestor: int) -> None:
    """Leaves the store as it was when `ancestor` was its newest block (-1: when it had none).

    A token stays untrusted even if the block that showed it is gone: reading its balances from state is always right.
    """
    journal = tx.rows(SQL.journal, {"ancestor": ancestor})
    if not journal:
        return
    where = {"ancestor": ancestor, "from_log": above(ancestor), "from_tx": above(ancestor)}
    pairs = holders.rolled_back_pairs(tx, ancestor, max(number for number, _, _ in journal))
    ids = holders.dropped_ids(tx, ancestor + 1, holders.counted_to(tx) + 1)
    held = {token for (token,) in tx.rows(SQL.moved_erc20, where)}
    for _, raw, _ in journal:
        touched = unpack_touched(raw)
        _roll_back_touched(tx, touched, ancestor)
        held.update(token for _, token in touched.named)
    for statement in (SQL.drop_erc20_holding, SQL.drop_erc20_holder):
        tx.run_many(statement, [(token, ancestor) for token in sorted(held)])
    moved = tx.rows(SQL.moved_erc1155, where)
    tx.run_many(SQL.drop_erc1155_holding, [(*row, ancestor) for row in moved])
    _roll_back_owners(tx, where, ancestor)
    tokens = tx.rows(SQL.moved_tokens, where)
    for statement in (*_LISTS, *_ROWS):
        tx.run(statement, where)
    tx.run_many(SQL.restate_standards_since, tokens)
    tx.run_many(SQL.restate_standards, tokens)
    holders.recount(tx, pairs, ids)
    holders.roll_back_to(tx, ancestor)
    roll_back_raw(tx, ancestor)
    dropped = {"next_address": min(next_address for _, _, next_address in journal)}
    for statement in (SQL.drop_code_of_dropped, SQL.drop_address):
        tx.run(statement, dropped)
    count_rollback(tx)


def count_rollback(tx: Transaction) -> None:
    """Says to readers that IDs and block numbers may be given again."""
    tx.run(SQL.count_rollback)


def _roll_back_touched(tx: Transaction, touched: TouchedAddresses, ancestor: int) -> None:
    tx.run_many(SQL.drop_native_balance, [(address, ancestor) for address in touched.native])
    tx.run_many(SQL.drop_code, [(address, ancestor) for address in touched.code])
    tx.run_many(SQL.reread_token, [(token,) for token in (*touched.silent, *touched.recoded)])
    tx.run_many(SQL.lower_silent_changes, [(token,) for token in (*touched.silent, *touched.silent_again)])


def _roll_back_owners(tx: Transaction, where: dict[str, int], ancestor: int) -> None:
    for token, token_id, address in tx.rows(SQL.moved_nfts, where):
        for (owner,) in tx.rows(SQL.owner_now, (token, token_id)):
            tx.run(SQL.drop_held, (owner, address, token_id))
        tx.run(SQL.drop_nft_owner, (token, token_id, ancestor))
        for (owner,) in tx.rows(SQL.owner_now, (token, token_id)):
            if any(tx.rows(SQL.address_of, (owner,))[0][0]):
                tx.run(SQL.put_held, (owner, address, token_id, token))
