#!/usr/bin/env python3
"""Runs a command on a terminal of its own and prints what it wrote there; the exit status is the command's.

terminal.py [--size ROWSxCOLUMNS] [--when TEXT BYTES]... [--resize-when TEXT ROWSxCOLUMNS] [--touch-when TEXT FILE] -- COMMAND...
--when types BYTES (\\x03 is ^C) as soon as TEXT has been seen, --touch-when makes FILE then; the pairs are used in order.
"""
import fcntl, os, pty, select, struct, sys, termios, time


def set_size(fd, text):
    rows, columns = map(int, text.split("x"))
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


arguments, size, script = sys.argv[1:], "24x80", []
while arguments[0] != "--":
    if arguments[0] == "--size":
        size, arguments = arguments[1], arguments[2:]
    else:
        script.append((arguments[0], arguments[1].encode(), arguments[2]))
        arguments = arguments[3:]
command = arguments[1:]
sized, is_sized = os.pipe()
pid, fd = pty.fork()
if pid == 0:
    os.read(sized, 1)  # until the size is set
    os.execvp(command[0], command)
set_size(fd, size)
os.write(is_sized, b".")
seen, from_here, until = b"", 0, time.time() + 200
while time.time() < until:
    ready, _, _ = select.select([fd], [], [], 0.05)
    if ready:
        try:
            data = os.read(fd, 65536)
        except OSError:
            break
        if not data:
            break
        seen += data
    while script and seen.find(script[0][1], from_here) >= 0:
        kind, text, action = script.pop(0)
        from_here = seen.find(text, from_here) + len(text)
        if kind == "--when":
            os.write(fd, action.encode().decode("unicode_escape").encode("latin1"))
        elif kind == "--touch-when":
            open(action, "w").close()
        else:
            set_size(fd, action)
sys.stdout.buffer.write(seen)
sys.stdout.flush()
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
