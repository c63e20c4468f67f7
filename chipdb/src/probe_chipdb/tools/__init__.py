"""For those who write the data: check, build, diff, pages, schema."""
