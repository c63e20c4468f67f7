"""A prober that reports which backend tinygrad really executes on."""
