"""A link between a broker and those who connect to it, which can be cut: a TCP proxy on the loopback."""

import contextlib
import socket
import threading


class Link:
    def __init__(self, port):
        self.target = port
        self.up = threading.Event()
        self.up.set()
        self.lock, self.open = threading.Lock(), set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"nats://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            near, _ = self.listener.accept()
            if not self.up.is_set() and self.refuses:
                near.close()
                continue
            threading.Thread(target=self.join, args=(near,), daemon=True).start()

    def join(self, near):
        self.up.wait()
        try:
            far = socket.create_connection(("127.0.0.1", self.target))
        except OSError:
            return near.close()
        with self.lock:
            self.open |= {near, far}
        for source, sink in ((near, far), (far, near)):
            threading.Thread(target=self.pump, args=(source, sink), daemon=True).start()

    def pump(self, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                # What is on its way waits in the buffers, as on a network that sends it again.
                self.up.wait()
                sink.sendall(data)
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        with self.lock:
            self.open -= {source, sink}

    def cut(self, refuses):
        """Nothing passes any more. With `refuses` the connections break, else they only fall silent."""
        self.refuses = refuses
        self.up.clear()
        if refuses:
            with self.lock:
                broken = list(self.open)
            for one in broken:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def mend(self):
        self.up.set()
