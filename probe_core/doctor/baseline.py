"""P."""


def save(request: object, document: object) -> str:
    return ""


def compare(request: object, document: object) -> None:
    return None
