"""Who may read a dashboard, and what is said to whom who may not; that it starts, or says why it does not."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

import windrow as wr

QUERY = wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()})


@pytest.fixture
def url() -> Iterator[str]:
    with wr.dashboard(QUERY.operator(), port=0, token="s\u00e9same") as live:
        yield live.url


def status(url: str, path: str, cookie: bytes | None = None) -> int:
    place = urlsplit(url)
    connection = HTTPConnection(str(place.hostname), place.port)
    connection.putrequest("GET", path)
    if cookie is not None:
        connection.putheader("Cookie", cookie)
    connection.endheaders()
    found = connection.getresponse()
    found.read()
    connection.close()
    while found.status == 302:
        return status(url, str(found.getheader("Location")).partition("?")[0])
    return found.status


def test_who_has_no_token_is_refused_whatever_the_cookie_says(url: str) -> None:
    assert status(url, "/") == 403
    assert status(url, "/", cookie=b"windrow-token=abc") == 403
    assert status(url, "/", cookie="windrow-token=\u00e9".encode("latin-1")) == 403
    assert status(url, "/?" + urlsplit(url).query) == 200


@pytest.mark.parametrize("token", [None, ""])
def test_beyond_this_machine_there_is_a_token_always(token: str | None) -> None:
    with wr.dashboard(QUERY.operator(), address="0.0.0.0", port=0, token=token) as live:
        port = urlsplit(live.url).port
        assert "?token=" in live.url
        assert status(f"http://127.0.0.1:{port}", "/") == 403


@pytest.mark.parametrize("port", [-1, 70_000])
def test_a_port_that_cannot_be_is_told(port: int) -> None:
    with pytest.raises(wr.QueryError, match=f"a port is a number from 0 to 65535, not {port}"):
        wr.dashboard(QUERY.operator(), port=port)


def test_a_page_that_cannot_be_served_is_an_error_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(OSError, match="Name or service not known"):
        wr.dashboard(QUERY.operator(), address="0.0.0.0", port=0)
