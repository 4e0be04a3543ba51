#!/usr/bin/env python3
"""Prints the query of a signed address:

python3 sign.py <kind> <alias> filename|folder <name> <expires> [<rendition> [<download> [<generation>]]]

MEDIA_SIGNING_KEY is in the environment.
"""

import base64
import hashlib
import hmac
import os
import sys
from urllib.parse import urlencode


def sign(key, kind, alias, scope, name, expires, rendition="", download="", generation=0):
    """Returns the query of an address of a private item, or of all below a folder."""
    text = b""
    for field in ("media1", kind, alias, scope, name, rendition, expires, download, generation):
        value = str(field).encode()
        text += str(len(value)).encode() + b":" + value
    mac = hmac.new(key.encode(), text, hashlib.sha256).digest()
    query = {"expires": expires, "signature": base64.urlsafe_b64encode(mac).rstrip(b"=").decode()}
    if scope == "folder":
        query["scope"] = name
    if download:
        query["download"] = download
    return urlencode(query)


if __name__ == "__main__":
    if not os.environ.get("MEDIA_SIGNING_KEY"):
        sys.exit("set MEDIA_SIGNING_KEY in the environment")
    if not 6 <= len(sys.argv) <= 9:
        sys.exit(__doc__)
    print(sign(os.environ["MEDIA_SIGNING_KEY"], *sys.argv[1:]))
