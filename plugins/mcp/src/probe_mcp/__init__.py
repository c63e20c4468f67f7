"""What a compute node is, as read-only tools for language models: `probe mcp`."""
