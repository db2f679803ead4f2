"""What a mark, an event, an import and a conversation cost, here and in the peers."""
