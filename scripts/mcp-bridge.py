"""Has `allclear mcp` answer over HTTP, for the conformance suite, which knows no standard input: `mcp-bridge.py PROGRAM`. Prints its address, and
serves until its input ends. Of Streamable HTTP it has what the suite needs: a POST for each message, answered by one JSON."""

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

server = subprocess.Popen([sys.argv[1], "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
answered = threading.Condition()
answers = {}


def read():
    for line in server.stdout:
        answer = json.loads(line)
        with answered:
            answers[json.dumps(answer.get("id"))] = line
            answered.notify_all()


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key = json.dumps(message.get("id"))
        with answered:
            answers.pop(key, None)
            server.stdin.write(json.dumps(message).encode() + b"\n")
            server.stdin.flush()
            if "id" not in message:
                return self.said(202, b"")
            is_answered = answered.wait_for(lambda: key in answers, timeout=30)
            body = answers.pop(key, b"")
        self.said(200 if is_answered else 504, body)

    def do_GET(self):
        self.said(405, b"")

    do_DELETE = do_GET

    def said(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


threading.Thread(target=read, daemon=True).start()
door = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=door.serve_forever, daemon=True).start()
print(f"http://127.0.0.1:{door.server_port}/mcp", flush=True)
sys.stdin.read()
server.stdin.close()
sys.exit(server.wait())
