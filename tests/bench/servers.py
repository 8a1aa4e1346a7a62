# SPDX-License-Identifier: MIT
"""nginx and Caddy, one worker each, as what the relay is held against."""
import os
import shutil
import socket
import subprocess

from bench import lib

NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
# A relay without limits: what is measured is not them.
FREE = ("--max-items-minute", "0", "--max-address-connections", "1000000",
        "--max-address-requests", "0", "--max-streams-each", "20000",
        "--max-items", "1000000", "--max-transfer-bytes", "0")


def start_nginx():
    where = lib.T + "/nginx"
    os.makedirs(where + "/www")
    os.chmod(where + "/www", 0o777)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with open(where + "/conf", "w") as f:
        f.write(f"""daemon off; master_process off; pid {where}/pid;
error_log {where}/err; events {{ worker_connections 512; }}
http {{ access_log off; sendfile on; keepalive_requests 1000000;
client_max_body_size 0; client_body_temp_path {where}/body;
proxy_temp_path {where}/p; fastcgi_temp_path {where}/f;
uwsgi_temp_path {where}/u; scgi_temp_path {where}/s;
server {{ listen 127.0.0.1:{port}; root {where}/www;
location = /v1/health {{ default_type application/json;
return 200 '{{"status":"ok"}}'; }}
location /put/ {{ proxy_pass http://127.0.0.1:{port}/v1/health;
client_body_in_file_only on; }} }} }}
""")
    child = subprocess.Popen([NGINX, "-e", where + "/err", "-c",
                              where + "/conf"])
    lib.atexit.register(lambda: (child.terminate(), child.wait()))

    def up():
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return True
        except OSError:
            return False
    lib.wait_for(up, "nginx")
    return child.pid, port, where + "/www"


def start_caddy():
    """(pid, port), or None where there is none."""
    if not shutil.which("caddy"):
        return None
    where = lib.T + "/caddy"
    os.makedirs(where)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with open(where + "/Caddyfile", "w") as f:
        f.write("{\n\tadmin off\n\tauto_https off\n}\n"
                f"http://127.0.0.1:{port} {{\n\trespond /v1/health "
                "`{\"status\":\"ok\"}`\n\troot * " + lib.T +
                "/nginx/www\n\tfile_server\n}\n")
    child = subprocess.Popen(
        ["caddy", "run", "--adapter", "caddyfile", "--config",
         where + "/Caddyfile"], stderr=subprocess.DEVNULL,
        env={**os.environ, "HOME": where, "XDG_DATA_HOME": where,
             "XDG_CONFIG_HOME": where, "GOMAXPROCS": "1"})
    lib.atexit.register(lambda: (child.terminate(), child.wait()))

    def up():
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return True
        except OSError:
            return False
    lib.wait_for(up, "caddy")
    return child.pid, port
