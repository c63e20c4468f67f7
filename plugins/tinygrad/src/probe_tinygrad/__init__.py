"""A prober that asks tinygrad which backend it would really execute on."""
