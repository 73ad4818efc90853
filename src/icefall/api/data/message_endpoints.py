"""The rows of messages between chains, over all indexed EVM chains."""

from icefall.api.data.handlers import messages
from icefall.api.data.schema.messages import (
    AddressMessagesParams,
    IcmMessagePage,
    IcmMessageResult,
    MessageParams,
    MessagesParams,
    TeleporterMessagePage,
    TeleporterMessageResult,
)
from icefall.api.describing import examples
from icefall.api.http.row import DATA, Rest, Weight

ICM, TELEPORTER = "/v1/icm", "/v1/teleporter"

# fmt: off
MESSAGE_ENDPOINTS: tuple[Rest, ...] = (
    Rest(verb="GET", path=f"{ICM}/messages/{{messageId}}", params=MessageParams, result=IcmMessageResult,
         handler=messages.get_icm, listeners=(DATA,), weight=Weight.MEDIUM, operation="getIcmMessage",
         summary="A message between chains by its ID."),
    Rest(verb="GET", path=f"{ICM}/messages", params=MessagesParams, result=IcmMessagePage,
         handler=messages.list_icm, listeners=(DATA,), weight=Weight.MEDIUM, operation="listIcmMessages",
         summary="Messages between chains, newest first, all or those of given chains and addresses."),
    Rest(verb="GET", path=f"{ICM}/addresses/{{address}}/messages", params=AddressMessagesParams,
         result=IcmMessagePage, handler=messages.icm_of_address, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="listIcmMessagesByAddress", examples=examples.MESSENGER_USER,
         summary="Messages between chains that an address sent or was to receive, newest first."),
    Rest(verb="GET", path=f"{TELEPORTER}/messages/{{messageId}}", params=MessageParams, result=TeleporterMessageResult,
         handler=messages.get_teleporter, listeners=(DATA,), weight=Weight.MEDIUM, operation="getTeleporterMessage",
         deprecated=f"use {ICM}/messages/{{messageId}}", summary="A message between chains by its ID."),
    Rest(verb="GET", path=f"{TELEPORTER}/messages", params=MessagesParams, result=TeleporterMessagePage,
         handler=messages.list_teleporter, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="listTeleporterMessages", deprecated=f"use {ICM}/messages",
         summary="Messages between chains, newest first, all or those of given chains and addresses."),
    Rest(verb="GET", path=f"{TELEPORTER}/addresses/{{address}}/messages", params=AddressMessagesParams,
         result=TeleporterMessagePage, handler=messages.teleporter_of_address, listeners=(DATA,),
         weight=Weight.MEDIUM, operation="listTeleporterMessagesByAddress", examples=examples.MESSENGER_USER,
         deprecated=f"use {ICM}/addresses/{{address}}/messages",
         summary="Messages between chains that an address sent or was to receive, newest first."),
)
# fmt: on
