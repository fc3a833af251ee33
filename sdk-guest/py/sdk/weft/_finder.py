"""The author's files: modules are imported from them, and files of data are read."""

import importlib.machinery
import sys

import _weft

files = _weft.files()
_roots = ("", "vendor/", "sdk/")
_folders = set()
for _name in files:
    _parts = _name.split("/")
    for _i in range(1, len(_parts)):
        _folders.add("/".join(_parts[:_i]))


def read(name):
    """Returns the bytes of a file of the project."""
    name = name.removeprefix("./")
    if name.startswith("/project/"):
        name = name.removeprefix("/project/")
    try:
        return files[name]
    except KeyError:
        raise FileNotFoundError(2, "the project has no such file", name) from None


class Loader:
    """Compiles a module from its source, so that tracebacks name the author's files and lines."""

    def __init__(self, name, path, package):
        self.name, self.path, self.package = name, path, package

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(compile(files[self.path], self.path, "exec", dont_inherit=True), module.__dict__)

    def is_package(self, name):
        return self.package

    def get_source(self, name):
        return files[self.path].decode()

    def get_code(self, name):
        return compile(files[self.path], self.path, "exec", dont_inherit=True)

    def get_filename(self, name):
        return self.path

    def get_data(self, path):
        return read(path)


class Finder:
    """Finds modules among the author's files: in the project, then in vendor."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        inside = name.replace(".", "/")
        for root in _roots:
            base = root + inside
            for file, package in ((base + "/__init__.py", True), (base + ".py", False)):
                if file in files:
                    spec = importlib.machinery.ModuleSpec(name, Loader(name, file, package), origin=file, is_package=package)
                    spec.has_location = True
                    if package:
                        spec.submodule_search_locations = [base]
                    return spec
        for root in _roots:
            if root + inside in _folders:
                spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
                spec.submodule_search_locations = [root + inside]
                return spec
        return None


def install():
    """Puts the finder before the frozen modules for a project's own SDK, and behind them for all else."""
    own = any(name.startswith("sdk/weft/") for name in files)
    if own:
        for name in [n for n in sys.modules if n == "weft" or n.startswith("weft.")]:
            if name not in ("weft._boot", "weft._finder"):
                del sys.modules[name]
        sys.meta_path.insert(0, SDKFinder)
    sys.meta_path.append(Finder)


class SDKFinder:
    """Finds the SDK in the project."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        return Finder.find_spec(name) if name.partition(".")[0] == "weft" else None


def lines(filename):
    """Gives linecache the lines of a file of the project."""
    text = files.get(filename)
    return None if text is None else text.decode("utf-8", "replace").splitlines(True)
