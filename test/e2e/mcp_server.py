"""An MCP server that is strict about the protocol: mcp_server.py stdio, or mcp_server.py http (its port goes to the file `port`).

It answers nothing before it was initialized, gives its tools in pages of one, asks its client for a ping and for what it cannot do before
it answers a call, and ends its sessions when it is told to. Every message is a line of the file `heard`."""
import http.server, json, os, sys

TOOLS = [{"name": "add"}, {"name": "fail"}, {"name": "env"}]
heard = open("heard", "a", buffering=1)


class Session:
    def __init__(self):
        self.ready = self.begun = False

    def error(self, id, code, message):
        return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}

    def answer(self, message):
        """The answer; None for a notification."""
        heard.write(json.dumps(message) + "\n")
        id, method, params = message.get("id"), message.get("method"), message.get("params", {})
        if message.get("jsonrpc") != "2.0" or (id is None) != str(method).startswith("notifications/"):
            return self.error(id, -32600, "not a request")
        if method == "initialize":
            if params.get("clientInfo", {}).get("name") != "cairn" or "capabilities" not in params:
                return self.error(id, -32602, "who are you")
            self.begun = True
            return {"jsonrpc": "2.0", "id": id, "result": {"protocolVersion": "2025-03-26", "capabilities": {"tools": {}}, "serverInfo": {"name": "strict", "version": "1"}}}
        if method == "notifications/initialized":
            self.ready = self.begun
            return None
        if not self.ready:
            return self.error(id, -32002, "not initialized")
        if method == "tools/list":
            at = int(params.get("cursor", 0))
            more = {"nextCursor": str(at + 1)} if at + 1 < len(TOOLS) else {}
            return {"jsonrpc": "2.0", "id": id, "result": {"tools": TOOLS[at:at + 1], **more}}
        if method != "tools/call":
            return self.error(id, -32601, "no method " + str(method))
        given = params["arguments"]
        if params["name"] == "add":
            return {"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": str(given["a"] + given["b"])}]}}
        if params["name"] == "env":
            return {"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": os.environ.get(given["which"], "")}]}}
        return {"jsonrpc": "2.0", "id": id, "result": {"isError": True, "content": [{"type": "text", "text": "the tool has failed"}]}}


def stdio():
    session = Session()
    print("ready to be spoken to", file=sys.stderr, flush=True)
    asked = None
    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message:  # what we had asked
            heard.write(json.dumps(message) + "\n")
            continue
        answer = session.answer(message)
        if message["method"] == "tools/call":
            for id, method in (("p", "ping"), ("s", "sampling/createMessage")):
                print(json.dumps({"jsonrpc": "2.0", "id": id, "method": method}), flush=True)
            print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}), flush=True)
        if message.get("params", {}).get("name") == "add" and message["params"]["arguments"]["a"] == 999:
            import time
            time.sleep(600)
        if answer:
            print(json.dumps(answer), flush=True)
    heard.write("input ended\n")


class Server(http.server.BaseHTTPRequestHandler):
    sessions = {}

    def reply(self, status, text="", *headers):
        self.send_response(status)
        for header in headers:
            self.send_header(*header)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers.get("Authorization") != "Bearer correct-horse-battery":
            return self.reply(401)
        if not {"application/json", "text/event-stream"} <= set(p.strip() for p in self.headers.get("Accept", "").split(",")):
            return self.reply(406)
        id = self.headers.get("Mcp-Session-Id")
        if message["method"] == "initialize":
            id = "session-%d" % len(self.sessions)
            self.sessions[id] = Session()
        elif id not in self.sessions:
            return self.reply(404)
        elif self.headers.get("MCP-Protocol-Version") != "2025-03-26":
            return self.reply(400)
        answer = self.sessions[id].answer(message)
        if not answer:
            return self.reply(202)
        if message["method"] == "tools/call":
            note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}
            body = ": hello\n\nevent: message\ndata: %s\n\nevent: message\nid: 7\ndata: %s\n\n" % (json.dumps(note), json.dumps(answer, indent=1).replace("\n", "\ndata: "))
            return self.reply(200, body, ("Content-Type", "text/event-stream; charset=utf-8"))
        self.reply(200, json.dumps(answer), ("Content-Type", "application/json"), ("Mcp-Session-Id", id))

    def do_DELETE(self):
        heard.write("session ended %s\n" % self.sessions.pop(self.headers.get("Mcp-Session-Id"), None).ready)
        self.reply(200)

    def log_message(self, *args):
        pass


if sys.argv[1] == "stdio":
    stdio()
else:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    open("port.new", "w").write(str(server.server_port))
    os.rename("port.new", "port")
    server.serve_forever()
