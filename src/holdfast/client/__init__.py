"""Ask a gateway as if its tables were here: `connect(url, token)` gives the same sessions and answers."""

from holdfast.client.connection import Connection, connect
from holdfast.client.remote_boards import RemoteHoldout, RemoteLeaderboard
from holdfast.client.session import RemoteSession
from holdfast.client.table import RemoteTable

__all__ = ["Connection", "RemoteHoldout", "RemoteLeaderboard", "RemoteSession", "RemoteTable", "connect"]
