"""What the devices of a node do now: a screen, JSON lines, alerts and an endpoint for Prometheus.

The samples themselves are `probe_core.samples`; here is what shows them, judges them and passes
them on. rich is imported when a screen is drawn and by nothing else.
"""
