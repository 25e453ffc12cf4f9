"""The expression graph."""
