"""Webhooks: events are matched with the blocks they are in, and messages about them are signed and delivered."""
