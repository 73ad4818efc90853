"""Containers of the P-, X- and C-Chain, and the exports of P- and C-Chain blocks."""
