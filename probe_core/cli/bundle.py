"""P."""


def write_bundle(args: object, context: object, document: object) -> None:
    return None
