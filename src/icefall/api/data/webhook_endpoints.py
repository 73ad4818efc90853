"""The rows of webhooks. All of them belong to the caller: to its API key, or to callers on this machine without one."""

from icefall.api.data.handlers import webhooks
from icefall.api.data.schema.webhooks import (
    AddressesChange,
    CreateWebhook,
    ReplayRequest,
    ReplayResult,
    SentTest,
    SharedSecret,
    UpdateWebhook,
    WebhookAddressesParams,
    WebhookAddressPage,
    WebhookMessagePage,
    WebhookMessagesParams,
    WebhookPage,
    WebhookParams,
    WebhookResult,
    WebhooksParams,
)
from icefall.api.describing import examples
from icefall.api.http.row import DATA, Rest, Weight, always_201

WEBHOOKS = "/v1/webhooks"
WEBHOOK = f"{WEBHOOKS}/{{id}}"

# fmt: off
WEBHOOK_ENDPOINTS: tuple[Rest, ...] = (
    Rest(verb="POST", path=WEBHOOKS, body=CreateWebhook, result=WebhookResult, handler=webhooks.create_webhook,
         listeners=(DATA,), weight=Weight.MEDIUM, operation="createWebhook", protected=True, success=201,
         status=always_201, body_example=examples.WEBHOOK,
         summary="Creates a webhook: messages about the activity of addresses are sent to its URL."),
    Rest(verb="GET", path=WEBHOOKS, params=WebhooksParams, result=WebhookPage, handler=webhooks.list_webhooks,
         listeners=(DATA,), weight=Weight.SMALL, operation="listWebhooks", protected=True,
         summary="Webhooks of the caller, newest first."),
    Rest(verb="GET", path=WEBHOOK, params=WebhookParams, result=WebhookResult, handler=webhooks.get_webhook,
         listeners=(DATA,), weight=Weight.SMALL, operation="getWebhook", protected=True, summary="A webhook by ID."),
    Rest(verb="PATCH", path=WEBHOOK, params=WebhookParams, body=UpdateWebhook, result=WebhookResult,
         handler=webhooks.update_webhook, listeners=(DATA,), weight=Weight.MEDIUM, operation="updateWebhook",
         protected=True, body_example={"name": "Deposits"},
         summary="Changes a webhook; one that is set to active again sends what failed in the last two days."),
    Rest(verb="DELETE", path=WEBHOOK, params=WebhookParams, result=WebhookResult,
         handler=webhooks.deactivate_webhook, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="deactivateWebhook", protected=True,
         summary="Sets a webhook to inactive; it stays in the list."),
    Rest(verb="GET", path=f"{WEBHOOK}/addresses", params=WebhookAddressesParams, result=WebhookAddressPage,
         handler=webhooks.list_addresses, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="getAddressesFromWebhook", protected=True, summary="Addresses of a webhook, in their order."),
    Rest(verb="PATCH", path=f"{WEBHOOK}/addresses", params=WebhookParams, body=AddressesChange,
         result=WebhookResult, handler=webhooks.add_addresses, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="addAddressesToWebhook", protected=True, body_example=examples.ADDRESSES,
         summary="Adds addresses to a webhook."),
    Rest(verb="DELETE", path=f"{WEBHOOK}/addresses", params=WebhookParams, body=AddressesChange,
         result=WebhookResult, handler=webhooks.remove_addresses, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="removeAddressesFromWebhook", protected=True, body_example=examples.ADDRESSES,
         summary="Removes addresses from a webhook; one must be left."),
    Rest(verb="POST", path=f"{WEBHOOKS}:generateOrRotateSharedSecret", result=SharedSecret,
         handler=webhooks.rotate_secret, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="generateOrRotateSharedSecret", protected=True, success=201, status=always_201,
         summary="Makes a new secret that messages are signed with; the one before signs for another day too."),
    Rest(verb="GET", path=f"{WEBHOOKS}:getSharedSecret", result=SharedSecret, handler=webhooks.get_secret,
         listeners=(DATA,), weight=Weight.SMALL, operation="getSharedSecret", protected=True,
         summary="The secret that messages to the caller's webhooks are signed with."),
    Rest(verb="GET", path=f"{WEBHOOK}/messages", params=WebhookMessagesParams, result=WebhookMessagePage,
         handler=webhooks.list_messages, listeners=(DATA,), weight=Weight.MEDIUM, operation="listWebhookMessages",
         protected=True, ours=True, summary="Messages of a webhook, newest first, with every attempt to send them."),
    Rest(verb="POST", path=f"{WEBHOOK}:replay", params=WebhookParams, body=ReplayRequest, result=ReplayResult,
         handler=webhooks.replay, listeners=(DATA,), weight=Weight.MEDIUM, operation="replayWebhook",
         protected=True, ours=True, body_example={"startBlock": 0},
         summary="Sends messages again, by ID or of a range of times or blocks, at most 10,000 of them."),
    Rest(verb="POST", path=f"{WEBHOOK}:test", params=WebhookParams, result=SentTest, handler=webhooks.send_test,
         listeners=(DATA,), weight=Weight.MEDIUM, operation="testWebhook", protected=True, ours=True,
         summary="Sends a message that is about no transaction, to test the receiver."),
)
# fmt: on
