"""redirect.py FOLDER: serves, over https with FOLDER/key.pem and cert.pem and over http, "the content" as /file; /stay leads
to the former, /leave to the latter, whose readers are counted in FOLDER/seen. FOLDER/ports tells both ports."""

import http.server
import os
import pathlib
import ssl
import sys
import threading

folder = pathlib.Path(sys.argv[1])


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        secure = self.server is servers[0]
        if self.path == "/file":
            if not secure:
                (folder / "seen").touch()
            self.send_response(200)
            self.send_header("Content-Length", "11")
            self.end_headers()
            self.wfile.write(b"the content")
            return
        kind, port = ("https", 0) if self.path == "/stay" else ("http", 1)
        self.send_response(302)
        self.send_header("Location", f"{kind}://localhost:{servers[port].server_port}/file")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


servers = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) for _ in range(2)]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
servers[0].socket = context.wrap_socket(servers[0].socket, server_side=True)
threads = [threading.Thread(target=server.serve_forever) for server in servers]
for thread in threads:
    thread.start()
(folder / "ports.new").write_text(f"{servers[0].server_port} {servers[1].server_port}\n")
os.rename(folder / "ports.new", folder / "ports")
