#!/usr/bin/env python3
"""usage: python3 items.py list [folder]
       python3 items.py delete filename ...
       python3 items.py move|copy filename new-filename
       python3 items.py replace filename photo.jpg
       python3 items.py import address ...

It manages images of the alias content, with upload.py in the same folder.
MEDIA_SERVER (https://media.example.com), MEDIA_API_KEY and MEDIA_PASSWORD are in the environment.
"""

import sys
from pathlib import Path
from urllib.parse import quote, urlencode

from upload import call, get_token, setting, upload_images

ITEMS = "/api/items/image/content"


def path_of(filename):
    """Returns the path of an image. Dot segments may be removed on the way, and would lead to another one."""
    if {"", ".", ".."}.intersection(filename.split("/")):
        raise ValueError(f'the name "{filename}" has a part that is empty, . or ..')
    return f"{ITEMS}/{quote(filename)}"


def list_images(token, folder=""):
    """Returns the images of a folder, page by page."""
    cursor = ""
    while cursor is not None:
        answer = call(token, "GET", f"{ITEMS}?{urlencode({'folder': folder, 'cursor': cursor})}")
        yield from answer["result"]
        cursor = answer.get("next")


def delete_images(token, *filenames):
    """Deletes one image, or up to 1,000 with one request."""
    if len(filenames) == 1:
        call(token, "DELETE", path_of(filenames[0]))
        return []
    form = urlencode([("action", "delete"), *(("filename", name) for name in filenames)]).encode()
    kept = [r for r in call(token, "POST", ITEMS, form)["result"] if not r["deleted"]]
    if kept:
        raise ValueError("\n".join(f"{r['filename']}: {r['message']}" for r in kept))
    return []


def move_image(token, filename, to, field="to"):
    """Moves an image, or copies it with the field copy_to. Returns the new one."""
    return call(token, "POST", path_of(filename), urlencode({field: to}).encode())["result"]


def replace_image(token, filename, path):
    """Replaces an image, if nobody else has replaced it. The alias must overwrite."""
    image = call(token, "GET", path_of(filename))["result"][0]
    return call(token, "PUT", path_of(filename), Path(path).read_bytes(), {"If-Match": image["etag"]})["result"]


def import_images(token, *addresses):
    """Uploads images from their addresses, all or none."""
    return upload_images(token, [], [("alias", "content"), *(("url", address) for address in addresses)])


COMMANDS = {  # with the least number of their arguments
    "list": (0, list_images),
    "delete": (1, delete_images),
    "move": (2, move_image),
    "copy": (2, lambda token, filename, to: move_image(token, filename, to, "copy_to")),
    "replace": (2, replace_image),
    "import": (1, import_images),
}


def main():
    least, command = COMMANDS.get("".join(sys.argv[1:2]), (sys.maxsize, None))
    args = sys.argv[2:]
    if len(args) < least:
        sys.exit(__doc__.partition("\n\n")[0])
    for item in command(get_token(setting("MEDIA_API_KEY"), setting("MEDIA_PASSWORD")), *args):
        print(item["full_path"], item["filename"])


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:  # ValueError is also an answer that is not JSON
        sys.exit(str(error))
