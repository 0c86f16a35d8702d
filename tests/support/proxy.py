"""A proxy between a client and a broker that can swallow the answers: what was done, and nobody was told."""

from __future__ import annotations

import contextlib
import socket
import threading


class AnswerEater:
    """Listens on ``port`` and forwards to ``upstream_port``. While ``eating``, requests pass and answers do not."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.upstream_port = 0
        self.eating = False
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def drop_connections(self) -> None:
        sockets, self._sockets = self._sockets, []
        for each in sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def close(self) -> None:
        self._listener.close()
        self.drop_connections()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    broker = socket.create_connection(("127.0.0.1", self.upstream_port))
                except OSError:
                    client.close()
                    continue
                self._sockets += [client, broker]
                for source, target, is_answer in ((client, broker, False), (broker, client, True)):
                    threading.Thread(target=self._pump, args=(source, target, is_answer), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                if not (is_answer and self.eating):
                    target.sendall(data)
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
