"""One page about a node, to hand to somebody: what it is, what is wrong with it, and every source.

The way of the data: a report's document → `page` (what is shown, in its order) → `html` or
`terminal`. Nothing but `html` imports Jinja2.
"""
