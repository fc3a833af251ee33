"""What steps do not have, and what to use instead."""

import builtins
import io
import os
import sys
import time

import _weft

from . import _finder
from ._host import call

_HTTP = "use await ctx.http(name).get(path) with a resource of the kind \"http\""
_BESIDE = "return a list of events: the steps that take them run side by side"
_NATIVE = "it is native code, which a step cannot load: use a package in pure Python in vendor/, or call a service by ctx.http(name)"
_STORE = "keep data in ctx.store, or in a resource of the kind \"kv\""

INSTEAD = {
    **dict.fromkeys("requests httpx aiohttp urllib3 http http.client urllib.request ftplib smtplib websockets socket ssl socketserver".split(), _HTTP),
    **dict.fromkeys("multiprocessing subprocess concurrent.futures.thread concurrent.futures.process".split(), _BESIDE),
    **dict.fromkeys("numpy pandas scipy torch sklearn cryptography orjson ujson ctypes".split(), _NATIVE),
    **dict.fromkeys("sqlite3 dbm shelve redis psycopg psycopg2 sqlalchemy".split(), _STORE),
    **dict.fromkeys("workflows llama_index llama_index.core llama_index.core.workflow".split(), "import from weft instead, such as from weft import Workflow, step"),
    "pydantic": "import BaseModel and Field from weft",
    "pydantic_core": "import BaseModel and Field from weft",
    "openai": "use await ctx.llm(name).chat(...) with a resource of the kind \"llm\"",
    "anthropic": "use await ctx.llm(name).chat(...) with a resource of the kind \"llm\"",
    "signal": "a run that is cancelled runs the handlers @catch_error(for_steps=[\"cancelled\"])",
    "tempfile": _STORE, "shutil": _STORE, "glob": _STORE,
    "dotenv": "settings of a step are in ctx.config, and keys in the operator's resources",
    "tkinter": "ask people by InputRequiredEvent", "readline": "ask people by InputRequiredEvent", "getpass": "ask people by InputRequiredEvent",
    "schedule": "use await ctx.sleep(duration)",
}


class Refuser:
    """The last finder: says what to use instead of a module that is not there."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        instead = INSTEAD.get(name) or INSTEAD.get(name.partition(".")[0])
        if instead:
            raise ModuleNotFoundError(f"a step has no module {name}: {instead}", name=name)
        if name.partition(".")[0] in sys.stdlib_module_names:
            raise ModuleNotFoundError(f"a step has no module {name}: the engine holds a part of the standard library only", name=name)
        if "." not in name and not name.startswith("_") and name not in _OPTIONAL:
            raise ModuleNotFoundError(f"no module named {name}: put the file into the project, or a package in pure Python into vendor/ "
                                      f"('pip install --target vendor {name}')", name=name)
        return None


_OPTIONAL = {"usercustomize", "sitecustomize", "org", "nt", "winreg", "msvcrt"}


def _refuse(what, instead):
    def refused(*args, **kwargs):
        raise RuntimeError(f"{what}: {instead}")
    return refused


def _open(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None):
    """Reads files of the project. Others are not there."""
    if isinstance(file, int) or set(mode) & set("wax+"):
        raise OSError(f"a step cannot write files ({file}): {_STORE}")
    try:
        data = io.BytesIO(_finder.read(os.fspath(file)))
    except FileNotFoundError:
        raise FileNotFoundError(2, f"a step has no files but those of its project ({', '.join(_data()) or 'none beside the sources'}): "
                                   f"put the file into the project, or {_STORE}", os.fspath(file)) from None
    return data if "b" in mode else io.TextIOWrapper(data, encoding=encoding or "utf-8", errors=errors, newline=newline)


def _data():
    return [name for name in _finder.files if not name.endswith(".py") and not name.startswith("vendor/")][:5]


def _urandom(n):
    if not _weft.in_step():
        raise RuntimeError("random bytes of the top level of a module, or of a default of the state, would be the same in every run, "
                           "because they are made once, at upload: call uuid4, secrets or os.urandom in a step")
    return b"".join(call("random", [min(4096, n - i)], "random") for i in range(0, n, 4096))


def install():
    """Replaces what would fail without saying why."""
    builtins.open = io.open = _open
    builtins.input = _refuse("input() has nobody to ask", "return InputRequiredEvent, or use await ctx.wait_for_event(HumanResponseEvent)")
    time.sleep = _refuse("time.sleep() would not wait: a step computes in no time", "use await ctx.sleep(seconds), or await asyncio.sleep(seconds)")
    os.system = os.popen = _refuse("a step cannot run programs", "call a service by ctx.http(name)")
    os.urandom = _urandom
    sys.meta_path.append(Refuser)
