"""A server of Temporal's protocol whose answers are no messages: HTTP/2 by hand. Prints its port; a byte in the file `asked` for each request."""
import socket, struct, threading


def frame(kind, flags, stream, body):
    return struct.pack("!I", len(body))[1:] + bytes([kind, flags]) + struct.pack("!I", stream) + body


def literal(name, value):
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


def take(connection, size):
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise OSError("closed")
        data += more
    return data


def talk(connection):
    try:
        take(connection, 24)
        connection.sendall(frame(4, 0, 0, b""))
        while True:
            head = take(connection, 9)
            size, kind, flags, stream = int.from_bytes(head[:3], "big"), head[3], head[4], int.from_bytes(head[5:], "big")
            body = take(connection, size)
            if kind == 4 and not flags & 1:
                connection.sendall(frame(4, 1, 0, b""))
            if kind == 6 and not flags & 1:
                connection.sendall(frame(6, 1, 0, body))
            if kind in (0, 1) and flags & 1:
                open("asked", "a").write("x")
                connection.sendall(frame(1, 4, stream, b"\x88" + literal(b"content-type", b"application/grpc")))
                connection.sendall(frame(0, 0, stream, b"\x00\x00\x00\x00\x04\xff\xff\xff\xff"))
                connection.sendall(frame(1, 5, stream, literal(b"grpc-status", b"0")))
    except OSError:
        pass


server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    threading.Thread(target=talk, args=(server.accept()[0],), daemon=True).start()
