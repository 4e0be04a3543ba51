#!/usr/bin/env python3
"""Uploads images:  python3 upload.py photo.jpg ...

MEDIA_SERVER (https://media.example.com), MEDIA_API_KEY and MEDIA_PASSWORD are in the environment.
"""

import json
import os
import secrets
import shutil
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlencode


def setting(name):
    """Returns a variable of the environment."""
    if not os.environ.get(name):
        sys.exit(f"set {name} in the environment")
    return os.environ[name]


def send(method, path, body, headers):
    """Sends a request. Returns the answer, which is JSON in success and in failure."""
    request = urllib.request.Request(setting("MEDIA_SERVER") + path, body, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=300) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return json.load(error)
    except urllib.error.URLError as error:
        raise ConnectionError(f"{os.environ['MEDIA_SERVER']} cannot be reached: {error.reason}") from error


def send_safely(method, path, body, headers):
    """Sends a change again until it is answered. With the key it is made once."""
    if method != "GET":
        headers["Idempotency-Key"] = secrets.token_hex(16)
    for attempt in range(1, 5):
        if hasattr(body, "seek"):
            body.seek(0)
        try:
            return send(method, path, body, headers)
        except ConnectionError as error:
            if attempt == 4:
                raise
            print(f"{error}: sending the request again", file=sys.stderr)
            time.sleep(attempt)


def call(token, method, path, body=None, headers=None):
    """Sends a request with a token. Returns the answer to its success."""
    answer = send_safely(method, path, body, {"Authorization": f"Bearer {token}", **(headers or {})})
    if not answer["success"]:
        raise ValueError("\n".join(": ".join(filter(None, (e["filename"], e["message"]))) for e in answer["errors"]))
    return answer


def get_token(api_key, password):
    body = urlencode({"api_key": api_key, "password": password}).encode()
    answer = send("POST", "/api/auth/generateToken", body, {"Content-Type": "application/x-www-form-urlencoded"})
    if not answer["success"]:
        raise ValueError(f"no token: {answer['message']}")
    return answer["token"]


def write_form(out, boundary, fields, paths):
    """Writes a body of multipart/form-data."""
    for name, value in fields:
        out.write(f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode())
    for path in paths:
        filename = path.name.replace("\\", "\\\\").replace('"', '\\"')
        out.write(f'--{boundary}\r\nContent-Disposition: form-data; name="files[]"; filename="{filename}"\r\n\r\n'.encode())
        with path.open("rb") as file:
            shutil.copyfileobj(file, out)
        out.write(b"\r\n")
    out.write(f"--{boundary}--\r\n".encode())


def upload_images(token, paths, fields):
    """Uploads images, all or none. Returns full_path and filename of each, and webp if it has a variant."""
    boundary = secrets.token_hex(16)
    with tempfile.TemporaryFile() as body:  # however large they are, memory is not
        write_form(body, boundary, fields, paths)
        length = body.tell()
        return call(token, "POST", "/api/upload/image", body, {
            "Content-Type": f"multipart/form-data; boundary={boundary}",
            "Content-Length": str(length),
        })["result"]


def main():
    token = get_token(setting("MEDIA_API_KEY"), setting("MEDIA_PASSWORD"))
    for item in upload_images(token, [Path(name) for name in sys.argv[1:]], [("alias", "content")]):
        print(item["full_path"], item["filename"])


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:  # ValueError is also an answer that is not JSON
        sys.exit(str(error))
