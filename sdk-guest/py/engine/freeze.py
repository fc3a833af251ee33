"""freeze.py LIB SDK OUT: writes the bytecode of the standard library's modules that steps have, and of the SDK, as C.

LIB is the standard library of the CPython that is linked, SDK the folder of the package weft. The bytecode is that of the Python
that runs this program: it must have the same minor version.
"""

import marshal
import os
import sys
import types

WANTED = """
__future__ _collections_abc _compat_pickle _markupbase _strptime _threading_local _weakrefset abc ast base64 bisect calendar cmath
codecs collections collections.abc colorsys contextlib contextvars copy copyreg csv dataclasses datetime decimal difflib dis email email._encoded_words
email._parseaddr email._policybase email.base64mime email.charset email.encoders email.errors email.header email.message email.quoprimime email.utils
encodings encodings.aliases encodings.ascii encodings.cp1252 encodings.hex_codec encodings.idna encodings.latin_1 encodings.punycode encodings.utf_16 encodings.utf_8
encodings.utf_8_sig enum fnmatch fractions functools graphlib hashlib heapq hmac html html.entities html.parser importlib importlib._abc importlib.abc
importlib.machinery importlib.metadata importlib.resources importlib.resources._adapters importlib.resources._common importlib.resources._itertools
importlib.resources._legacy importlib.resources.abc importlib.resources.readers inspect concurrent concurrent.futures concurrent.futures._base io ipaddress json json.decoder json.encoder json.scanner keyword linecache
locale logging numbers opcode operator pathlib platform pickle pkgutil pprint queue quopri random re re._casefix re._compiler re._constants re._parser reprlib
secrets selectors shlex sre_compile sre_constants sre_parse statistics string stringprep struct textwrap threading timeit token tokenize
tomllib tomllib._parser tomllib._re tomllib._types traceback types typing unicodedata urllib urllib.parse uuid warnings weakref xml xml.etree
xml.etree.ElementPath xml.etree.ElementTree zipfile zlib zoneinfo
asyncio asyncio.base_futures asyncio.base_tasks asyncio.constants asyncio.coroutines asyncio.events asyncio.exceptions asyncio.format_helpers
asyncio.futures asyncio.locks asyncio.log asyncio.mixins asyncio.queues asyncio.runners asyncio.taskgroups asyncio.tasks asyncio.threads asyncio.timeouts
""".split()

# These are imported by nearly every workflow. They lie side by side, so that whole pages are zero once they have been imported.
FIRST = """
_collections_abc _weakrefset abc codecs collections collections.abc contextlib copy copyreg datetime encodings encodings.aliases encodings.utf_8 enum
functools heapq importlib importlib._abc importlib.machinery io json json.decoder json.encoder json.scanner keyword opcode operator re re._casefix
re._compiler re._constants re._parser reprlib types typing warnings weakref
""".split()

# What a step has of asyncio: all that needs no files, processes or threads.
ASYNCIO = """
from .coroutines import *
from .events import *
from .exceptions import *
from .futures import *
from .locks import *
from .queues import *
from .runners import *
from .taskgroups import *
from .tasks import *
from .threads import *
from .timeouts import *
"""


def once(text, old, new):
    """Replaces a text that must be there once."""
    if text.count(old) != 1:
        sys.exit(f"the library has {text.count(old)} times {old!r}, not once: its version is not the pinned one")
    return text.replace(old, new)


def events(text):
    text = once(text, "import socket\n", "class socket: AF_UNSPEC = AI_PASSIVE = 0\n")
    return once(text, "import subprocess\n", "class subprocess: PIPE = -1\n")


RUNNERS = """
__all__ = ("run",)
def run(main, *, debug=None):
    main.close()
    raise RuntimeError("asyncio.run() is for programs: weft runs the steps; put the call under if __name__ == '__main__':")
"""


def threading(text):
    return text + """
def _start(self):
    raise RuntimeError("a step has no threads: return a list of events, and the steps that take them run side by side")
Thread.start = _start
"""


# The library defines the classes in Python as well, and then takes those in C.
DATETIME = """
from _datetime import *
from _datetime import __doc__
__all__ = ("date", "datetime", "time", "timedelta", "timezone", "tzinfo", "MINYEAR", "MAXYEAR", "UTC")
"""


# Most programs never call a function of inspect, whose import costs more than that of all else here together.
def without_inspect(text):
    return once(text, "\nimport inspect\n", """
class _Inspect:
    def __getattr__(self, name):
        import inspect
        return getattr(inspect, name)
inspect = _Inspect()
""")


# The generator behind the functions of random is seeded at its first use in each step: a seed of the image would give the same numbers
# in every invocation.
def random(text):
    return once(text, "_inst = Random()\n", """
class _StepRandom(Random):
    def __init__(self):
        self.seeded = None
        super().__init__()
    def seed(self, *args, **kw):
        import _weft
        self.seeded = _weft.in_step()
        super().seed(*args, **kw)
    def _ready(self):
        import _weft
        if _weft.in_step():
            super().seed()
            self.seeded = True
    def random(self):
        if not self.seeded: self._ready()
        return super().random()
    def getrandbits(self, k):
        if not self.seeded: self._ready()
        return super().getrandbits(k)
_inst = _StepRandom()
""")


CHANGES = {"asyncio": lambda text: ASYNCIO, "asyncio.coroutines": without_inspect, "asyncio.events": events, "asyncio.format_helpers": without_inspect,
           "asyncio.runners": lambda text: RUNNERS, "asyncio.tasks": without_inspect, "dataclasses": without_inspect,
           "datetime": lambda text: DATETIME, "threading": threading, "random": random}


def without_lines(code):
    """Returns code without its table of lines, a quarter of its size: errors name the author's lines only."""
    units = len(code.co_code) // 2
    none = bytes(0x80 | 15 << 3 | min(units - i, 8) - 1 for i in range(0, units, 8))  # "no location", for 8 instructions at most
    constants = tuple(without_lines(c) if isinstance(c, types.CodeType) else c for c in code.co_consts)
    return code.replace(co_linetable=none, co_consts=constants)


def frozen(name, path, shown, package):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    if name in CHANGES:
        text = CHANGES[name](text)
    return name, package, marshal.dumps(without_lines(compile(text, shown, "exec", optimize=2, dont_inherit=True)))


def library(lib):
    for name in sorted(set(WANTED)):
        path = os.path.join(lib, *name.split("."))
        package = os.path.exists(path + "/__init__.py")
        path += "/__init__.py" if package else ".py"
        if os.path.exists(path):  # others are in C
            yield frozen(name, path, "<lib>/" + name.replace(".", "/") + ".py", package)


def sdk(folder):
    for file in sorted(os.listdir(folder)):
        if file.endswith(".py"):
            name = "weft" if file == "__init__.py" else "weft." + file[:-3]
            yield frozen(name, os.path.join(folder, file), "<weft>/" + file, file == "__init__.py")


def main(lib, folder, out):
    modules = sorted([*sdk(folder), *library(lib)], key=lambda m: m[0] not in FIRST and not m[0].startswith("weft"))
    with open(out, "w", encoding="ascii") as f:
        f.write("#include <Python.h>\n")
        for i, (_, _, code) in enumerate(modules):
            f.write("static unsigned char m%d[] = {%s};\n" % (i, ",".join(map(str, code))))
        f.write("struct _frozen weft_frozen[] = {\n")
        for i, (name, package, code) in enumerate(modules):
            f.write('\t{"%s", m%d, %d, %d, 0},\n' % (name, i, len(code), package))
        f.write("\t{0}};\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
