"""The steps of one probe, in the order of the data: run, collect, validate, identity, merge …"""
