-- Starts a store anew: every row that comes from blocks is deleted. What is left is by name or by address, not by block:
-- meta (but for the marks of how far blocks were processed), price, reputation and listed_token.

-- name: clear_webhook_outbox
delete from webhook_outbox;

-- name: clear_address
delete from address;

-- name: clear_block
delete from block;

-- name: clear_tx
delete from tx;

-- name: clear_tx_by_hash
delete from tx_by_hash_merged;

-- postgres: clear_tx_by_hash

-- name: clear_native_of
delete from native_of_merged;

-- postgres: clear_native_of

-- name: clear_touch_of
delete from touch_of_merged;

-- postgres: clear_touch_of
delete from touch_rest;

-- name: clear_{standard}
delete from {standard};

-- name: clear_erc20_in
delete from erc20_in;

-- postgres: clear_erc20_in

-- name: clear_erc20_of
delete from erc20_of_merged;

-- postgres: clear_erc20_of

-- name: clear_{with_ids}_of
delete from {with_ids}_of;

-- name: clear_internal
delete from internal;

-- name: clear_internal_of
delete from internal_of;

-- name: clear_deployment
delete from deployment;

-- name: clear_deployed_by
delete from deployed_by;

-- name: clear_message
delete from message;

-- name: clear_messenger_event
delete from messenger_event;

-- name: clear_message_count
delete from message_count;

-- name: clear_native_balance
delete from native_balance_merged;

-- postgres: clear_native_balance
delete from native_rest;

-- name: clear_erc20_balance
delete from erc20_balance_merged;

-- postgres: clear_erc20_balance

-- name: clear_erc20_holding
delete from erc20_holding_merged;

-- postgres: clear_erc20_holding
delete from held_token;

-- name: clear_erc20_holder
delete from erc20_holder;

-- postgres: clear_erc20_holder

-- name: clear_{by_id}_balance
delete from {by_id}_balance;

-- name: clear_{by_id}_holding
delete from {by_id}_holding;

-- name: clear_nft_owner
delete from nft_owner;

-- name: clear_nft_range
delete from nft_range;

-- name: clear_nft_held
delete from nft_held;

-- name: clear_slot
delete from slot;

-- name: clear_unclaimed_slot
delete from unclaimed_slot;

-- name: clear_slot_change
delete from slot_change;

-- name: clear_code
delete from code;

-- name: clear_token
delete from token;

-- name: clear_earlier_layout
delete from earlier_layout;

-- name: clear_name_part
delete from name_part;

-- name: clear_nft
delete from nft;

-- name: clear_rollup
delete from rollup;

-- name: clear_last_activity
delete from last_activity;

-- name: clear_activity
delete from activity;

-- name: clear_deployer
delete from deployer;

-- name: clear_block_price
delete from block_price;

-- name: clear_audit
delete from audit;

-- name: clear_nft_state_owner
delete from nft_state_owner;

-- name: clear_holder
delete from holder;

-- name: clear_holder_total
delete from holder_total;

-- name: clear_log
delete from log;

-- name: clear_call_tree
delete from call_tree;

-- name: clear_marks
delete from meta
where name in (
    'holders_to', 'logs_from', 'calls_from', 'webhook_outbox', 'messages_missing_below');
