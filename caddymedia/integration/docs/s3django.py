"""Stores, reads, lists and deletes files with Django's default storage, as the page configures it."""
import sys
import urllib.request

import django
from django.conf import settings
from django.core.files.base import ContentFile

page = {}
exec(open(sys.argv[1]).read(), page)
options = {name: value for name, value in page.items() if name.isupper()}
if django.VERSION < (4, 2):
    options["DEFAULT_FILE_STORAGE"] = options.pop("STORAGES")["default"]["BACKEND"]
settings.configure(**options)

from django.core.files.storage import default_storage

content = bytes(range(256)) * (12 << 12)
name = default_storage.save("django/a b/ü.bin", ContentFile(content))
assert default_storage.open(name).read() == content
assert (default_storage.size(name), default_storage.exists(name)) == (len(content), True)
assert default_storage.listdir("django/a b") == ([], ["ü.bin"]), default_storage.listdir("django/a b")
assert default_storage.url(name) == "https://example.com/static/file/docs/django/a%20b/%C3%BC.bin", default_storage.url(name)
with urllib.request.urlopen(default_storage.__class__(custom_domain=None).url(name)) as signed:
    assert signed.read() == content
default_storage.save("django/empty.txt", ContentFile(b""))
default_storage.save("django/next.txt", ContentFile(b"next"))
for name in name, "django/empty.txt", "django/next.txt":
    default_storage.delete(name)
assert not default_storage.exists("django/next.txt")
