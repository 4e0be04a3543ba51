# An FTP server on pyftpdlib: PORT FOLDER [without=COMMAND,...] [dos=1] [tls=PEM FILE]
import logging
import os
import stat
import sys
import time

from pyftpdlib.authorizers import DummyAuthorizer
from pyftpdlib.filesystems import AbstractedFS
from pyftpdlib.handlers import FTPHandler
from pyftpdlib.servers import ThreadedFTPServer

port, folder = int(sys.argv[1]), sys.argv[2]
options = dict(argument.split("=", 1) for argument in sys.argv[3:])

base = FTPHandler
if "tls" in options:
    from pyftpdlib.handlers import TLS_FTPHandler

    base = TLS_FTPHandler


class FS(AbstractedFS):
    # The library changes the folder of the process, which all threads share: it may be one that another removes.
    def chdir(self, path):
        os.listdir(path)
        self.cwd = self.fs2ftp(path)


class DOSFS(FS):
    def format_list(self, basedir, listing, ignore_err=True):
        for name in listing:
            try:
                st = self.lstat(os.path.join(basedir, name))
            except OSError:
                continue
            when = time.strftime("%m-%d-%y  %I:%M%p", time.gmtime(st.st_mtime))
            size = "<DIR>         " if stat.S_ISDIR(st.st_mode) else "%20d" % st.st_size
            yield ("%s       %s %s\r\n" % (when, size, name)).encode()


class Handler(base):
    abstracted_fs = FS
    authorizer = DummyAuthorizer()
    use_sendfile = False
    proto_cmds = {k: v for k, v in base.proto_cmds.items() if k not in options.get("without", "").split(",")}


if "dos" in options:
    Handler.abstracted_fs = DOSFS
if "tls" in options:
    Handler.certfile = options["tls"]
    Handler.tls_control_required = Handler.tls_data_required = True
Handler.authorizer.add_user("u", "p", folder, perm="elradfmwMT")
logging.basicConfig(level=logging.CRITICAL)
ThreadedFTPServer(("127.0.0.1", port), Handler).serve_forever()
