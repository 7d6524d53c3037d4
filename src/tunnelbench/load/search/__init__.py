"""Rate search: the highest rate that a system carries, from an injected measurement, by published rules."""
