"""The archive that nodes without a probe get is made only where it may be sent."""

from __future__ import annotations

import asyncio

import pytest

from probe_cluster.gathering.model import Limits
from probe_cluster.gathering.sending import Parcel


def test_it_is_not_made_where_nothing_is_to_be_sent() -> None:
    async def ask() -> None:
        parcel = Parcel(Limits(send=False))
        parcel.begin()
        await parcel.data()

    with pytest.raises(ValueError, match=r"^nothing is to be sent$"):
        asyncio.run(ask())
