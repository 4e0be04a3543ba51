"""A storage of Django: the files of ImageField and FileField are items of the media service.

MEDIA_SERVER (https://www.example.com), MEDIA_API_KEY and MEDIA_PASSWORD are in the environment.
"""

import json
import os
import time
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

from django.core.files.base import ContentFile
from django.core.files.storage import Storage
from django.utils.deconstruct import deconstructible


@deconstructible
class MediaStorage(Storage):
    """Stores in an image alias, or in a file alias with kind="file"."""

    _token, _expires_at = "", 0.0

    def __init__(self, kind="image", alias="content"):
        self.kind, self.alias = kind, alias

    def _save(self, name, content):
        # The service chooses a free name, and Django keeps it.
        return self._call("PUT", "upload", name, content)["result"][0]["filename"]

    def _open(self, name, mode="rb"):
        with urlopen(self.url(name), timeout=300) as answer:
            return ContentFile(answer.read(), name)

    def exists(self, name):
        return False

    def delete(self, name):
        try:
            self._call("DELETE", "items", name)
        except FileNotFoundError:
            pass

    def size(self, name):
        return self._call("GET", "items", name)["result"][0]["size"]

    def url(self, name, rendition=""):
        """Returns the address of an item, or that of a rendition of an image."""
        kind, size = ("img" if self.kind == "image" else "file"), ("@" + rendition if rendition else "")
        return f"{os.environ['MEDIA_SERVER']}/static/{kind}/{self.alias}{size}/{self._path(name)}"

    @staticmethod
    def _path(name):
        if {"", ".", ".."}.intersection(name.split("/")):  # these may be removed on the way, and lead to another item
            raise ValueError(f'the name "{name}" has a part that is empty, . or ..')
        return quote(name)

    def _call(self, method, endpoint, name, content=None):
        path = f"/api/{endpoint}/{self.kind}/{self.alias}/{self._path(name)}"
        try:
            return self._send(method, path, content, self._login())
        except PermissionError:  # the token has ended before its time
            self._expires_at = 0.0
            return self._send(method, path, content, self._login())

    def _login(self):
        if time.time() > self._expires_at - 60:
            login = {"api_key": os.environ["MEDIA_API_KEY"], "password": os.environ["MEDIA_PASSWORD"]}
            answer = self._send("POST", "/api/auth/generateToken", ContentFile(urlencode(login).encode()))
            self._token, self._expires_at = answer["token"], answer["expires_at"]
        return self._token

    @staticmethod
    def _send(method, path, content, token=""):
        request = Request(os.environ["MEDIA_SERVER"] + path, method=method)
        if content is not None:
            request.data = content.chunks()
            request.add_header("Content-Length", str(content.size))
        if token:
            request.add_header("Authorization", "Bearer " + token)
        try:
            with urlopen(request, timeout=300) as answer:
                return json.load(answer)
        except HTTPError as error:
            with error:
                answer = json.load(error)
            kinds = {401: PermissionError, 404: FileNotFoundError}
            raise kinds.get(error.code, ValueError)(answer.get("message") or answer["errors"][0]["message"]) from error
