"""Who may read a dashboard: browsers of this machine; elsewhere those that know the token.

The page is Bokeh's, served from this process, and nothing is loaded from elsewhere. What a browser sends are ranges and sizes of charts; no text
of it is run or becomes a part of a query.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import secrets
import socket
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from bokeh.application import Application
from bokeh.application.handlers.function import FunctionHandler
from bokeh.server.auth_provider import AuthProvider, NullAuth
from bokeh.server.server import BaseServer
from bokeh.server.tornado import BokehTornado
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop, PeriodicCallback
from tornado.web import RequestHandler

from windrow.errors import QueryError
from windrow.live.document import fill

if TYPE_CHECKING:
    from windrow.live.board import Dashboard

# How often results are sorted in, in milliseconds.
DRAIN = 100
COOKIE = "windrow-token"
HIGHEST_PORT = 65_535


class Server:
    """A page that is being served, by a thread of its own."""

    def __init__(self, url: str, server: BaseServer, thread: threading.Thread) -> None:
        self.url = url
        self._server, self._thread = server, thread

    def stop(self) -> None:
        """Serve no longer."""
        loop = self._server.io_loop

        def end() -> None:
            self._server.stop()
            loop.stop()

        loop.add_callback(end)
        self._thread.join()


def serve(board: Dashboard, *, address: str, port: int, token: str | None) -> Server:
    """Serve a dashboard."""
    if not 0 <= port <= HIGHEST_PORT:
        raise QueryError(f"a port is a number from 0 to {HIGHEST_PORT}, not {port}")
    if not token and not _is_loopback(address):
        token = secrets.token_urlsafe(24)
    try:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        listening = socket.create_server((address, port), family=family)
    except OSError as problem:
        raise QueryError(
            f"cannot listen on {address}:{port}: {problem.strerror}; name another port"
        ) from None
    port = listening.getsockname()[1]
    begun: Future[BaseServer] = Future()

    def run() -> None:
        asyncio.set_event_loop(asyncio.new_event_loop())
        loop = IOLoop.current()
        try:
            server = _listening(board, loop, listening, address, token)
        except BaseException as problem:  # the caller raises it
            listening.close()
            loop.close()
            begun.set_exception(problem)
            return
        drained = PeriodicCallback(board.store.drain, DRAIN)
        drained.start()
        loop.add_callback(begun.set_result, server)
        loop.start()
        drained.stop()
        loop.close()

    thread = threading.Thread(target=run, name="windrow dashboard", daemon=True)
    thread.start()
    server = begun.result()
    host = socket.gethostname() if address in ("0.0.0.0", "::") else address
    shown = f"[{host}]" if ":" in host else host
    return Server(f"http://{shown}:{port}/" + (f"?token={quote(token)}" if token else ""), server, thread)


def _listening(
    board: Dashboard, loop: IOLoop, listening: socket.socket, address: str, token: str | None
) -> BaseServer:
    names = {address, "localhost", "127.0.0.1"}
    if address in ("0.0.0.0", "::"):
        names |= {socket.gethostname(), socket.getfqdn()}
        names |= {str(info[4][0]) for info in socket.getaddrinfo(socket.gethostname(), None)}
    listening.setblocking(False)
    port = listening.getsockname()[1]
    application = BokehTornado(
        {"/": Application(FunctionHandler(lambda document: fill(document, board)))},
        extra_websocket_origins=[f"{name}:{port}" for name in sorted(names)],
        auth_provider=_Token(token) if token else NullAuth(),
        unused_session_lifetime_milliseconds=5_000,
        check_unused_sessions_milliseconds=2_000,
    )
    http = HTTPServer(application)
    http.add_socket(listening)
    server = BaseServer(loop, application, http)
    server.start()
    return server


def _is_loopback(address: str) -> bool:
    try:
        return address == "localhost" or ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


class _Token(AuthProvider):
    """Readers say the token once, in the address; a cookie says it from then on."""

    def __init__(self, token: str) -> None:
        self._token = token
        super().__init__()

    @property
    def get_user(self) -> Any:
        digest = hashlib.sha256(self._token.encode()).hexdigest()

        def user(handler: RequestHandler) -> str | None:
            said = handler.get_argument("token", None)
            if said is None:
                known = hmac.compare_digest((handler.get_cookie(COOKIE) or "").encode(), digest.encode())
            else:
                known = hmac.compare_digest(said.encode(), self._token.encode())
            if not known:
                return None
            if handler.request.headers.get("Upgrade", "").lower() != "websocket":
                handler.set_cookie(COOKIE, digest, httponly=True, samesite="Strict")
            return "reader"

        return user

    @property
    def login_url(self) -> str:
        return "/token"

    @property
    def login_handler(self) -> type[RequestHandler]:
        return _Refused


class _Refused(RequestHandler):
    """Who does not know the token gets a sentence."""

    def get(self) -> None:
        self.set_status(403)
        self.finish("this dashboard needs its token: open the address that the command has printed")
