"""Conversations: their rendering by a chat template, their ids, and what of them is learned."""
