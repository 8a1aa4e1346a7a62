#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A TCP shim in front of a relay on loopback: a network that can go wrong.

    shim.py PORT SOCKET [LISTEN]   pass connections on to 127.0.0.1:PORT; the
                                   first line on stdout is our own port
    shim.py tell SOCKET WORDS...   say something to it, print its answer

    pass        as if we were not there (what was dropped stays dead)
    drop        silence: bytes are swallowed, nothing is closed; connections
                that met it never recover
    hold        silence until `pass`, then everything arrives: a cable pulled
                and put back
    refuse      nobody listens: connection refused; open ones are reset
    reset       reset what is open now; new connections pass
    delay S     everything takes S seconds more
    buffer S    a proxy that keeps answers for S seconds, then gives them
    rate N      N bytes a second each way
    cut N       reset each connection once the client has sent N bytes
    cutreply    pass a request on, and reset when its answer comes
    stat        `connections N open N up N down N`
"""
import asyncio
import os
import socket
import struct
import sys

CHUNK = 65536


class Shim:
    def __init__(self, port):
        self.port = port
        self.mode, self.value = "pass", 0.0
        self.open = set()
        self.count = self.up = self.down = 0
        self.moving = asyncio.Event()
        self.moving.set()
        self.server = None
        self.listen_port = 0

    async def listen(self):
        self.server = await asyncio.start_server(
            self.accept, "127.0.0.1", self.listen_port, backlog=1024)
        self.listen_port = self.server.sockets[0].getsockname()[1]

    async def accept(self, reader, writer):
        self.count += 1
        conn = Conn(self, reader, writer)
        self.open.add(conn)
        try:
            await conn.run()
        except (OSError, asyncio.IncompleteReadError):
            conn.reset()
        finally:
            self.open.discard(conn)

    async def switch(self, words):
        mode = words[0]
        if mode == "stat":
            return (f"connections {self.count} open {len(self.open)} "
                    f"up {self.up} down {self.down}")
        if mode == "reset":
            for conn in list(self.open):
                conn.reset()
            return "ok"
        if mode not in ("pass", "drop", "hold", "refuse", "delay", "buffer",
                        "rate", "cut", "cutreply"):
            return "what?"
        self.mode = mode
        self.value = float(words[1]) if len(words) > 1 else 0.0
        if mode == "drop":
            for conn in self.open:
                conn.dead = True
        if mode == "hold":
            self.moving.clear()
        else:
            self.moving.set()
        if mode == "refuse":
            if self.server:
                self.server.close()
                self.server = None
            for conn in list(self.open):
                conn.reset()
        elif not self.server:
            await self.listen()
        return "ok"

    async def control(self, reader, writer):
        line = (await reader.readline()).decode().split()
        answer = await self.switch(line) if line else "what?"
        writer.write(answer.encode() + b"\n")
        writer.close()


class Conn:
    def __init__(self, shim, reader, writer):
        self.shim, self.reader, self.writer = shim, reader, writer
        self.peer = None
        self.dead = shim.mode == "drop"
        self.sent = 0

    def reset(self):
        for writer in (self.writer, self.peer):
            if writer is None:
                continue
            sock = writer.get_extra_info("socket")
            try:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                struct.pack("ii", 1, 0))
            except OSError:
                pass
            writer.transport.abort()

    async def run(self):
        if self.dead:
            while await self.reader.read(CHUNK):
                pass
            await asyncio.Event().wait()
        await self.shim.moving.wait()
        reader, self.peer = await asyncio.open_connection(
            "127.0.0.1", self.shim.port)
        await asyncio.gather(self.pump(self.reader, self.peer, True),
                             self.pump(reader, self.writer, False))

    async def pump(self, reader, writer, up):
        shim = self.shim
        while True:
            data = await reader.read(CHUNK)
            if shim.mode == "buffer" and not up and data:
                data += await self.gather_more(reader)
            await shim.moving.wait()
            if self.dead:
                if not data:
                    await asyncio.Event().wait()
                continue
            if not data:
                break
            if shim.mode == "delay":
                await asyncio.sleep(shim.value)
            elif shim.mode == "rate":
                await asyncio.sleep(len(data) / shim.value)
            elif shim.mode == "cutreply" and not up:
                return self.reset()
            if self.dead:
                continue
            if up:
                self.sent += len(data)
                shim.up += len(data)
                if shim.mode == "cut" and self.sent >= shim.value:
                    return self.reset()
            else:
                shim.down += len(data)
            writer.write(data)
            await writer.drain()
        try:
            writer.write_eof()
        except OSError:
            pass

    async def gather_more(self, reader):
        """What comes within the buffer's time, however it comes."""
        parts = []
        end = asyncio.get_running_loop().time() + self.shim.value
        while (left := end - asyncio.get_running_loop().time()) > 0:
            try:
                data = await asyncio.wait_for(reader.read(CHUNK), left)
            except asyncio.TimeoutError:
                break
            if not data:
                break
            parts.append(data)
        return b"".join(parts)


async def serve(port, path, listen):
    shim = Shim(port)
    shim.listen_port = listen
    await shim.listen()
    await asyncio.start_unix_server(shim.control, path)
    print(shim.listen_port, flush=True)
    await asyncio.Event().wait()


def tell(path, words):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(5)
        s.connect(path)
        s.sendall(" ".join(words).encode() + b"\n")
        answer = s.makefile().readline().strip()
    print(answer)
    return answer == "what?"


if __name__ == "__main__":
    if len(sys.argv) > 3 and sys.argv[1] == "tell":
        sys.exit(tell(sys.argv[2], sys.argv[3:]))
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    try:
        asyncio.run(serve(int(sys.argv[1]), sys.argv[2],
                          int(sys.argv[3]) if len(sys.argv) > 3 else 0))
    except KeyboardInterrupt:
        os._exit(0)
