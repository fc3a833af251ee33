"""What functions are, without dis and inspect, whose import costs more than all else that describes a workflow."""

from opcode import EXTENDED_ARG, opmap

GENERATOR, COROUTINE, ASYNC_GENERATOR = 0x20, 0x80, 0x200  # flags of a function's code

_GLOBAL = opmap["LOAD_GLOBAL"]
_NAMED = {opmap[name]: name for name in ("LOAD_NAME", "LOAD_ATTR", "LOAD_METHOD")}
_LOCAL = {opmap[name]: name for name in ("LOAD_FAST", "LOAD_DEREF")}


def instructions(code):
    """Lists the instructions of a function's code: (name, what it loads) of those that load a variable or an attribute, (None, None) of others."""
    raw, names, high = code.co_code, code.co_names, 0
    for i in range(0, len(raw), 2):
        op, arg = raw[i], raw[i + 1] | high
        if op == EXTENDED_ARG:
            high = arg << 8
            continue
        high = 0
        if op == _GLOBAL:
            yield "LOAD_GLOBAL", names[arg >> 1]
        elif op in _NAMED:
            yield _NAMED[op], names[arg]
        elif op in _LOCAL:
            yield _LOCAL[op], code._varname_from_oparg(arg)
        elif op:  # 0 is room for what the interpreter keeps of the instruction before
            yield None, None


def is_kind(f, flag):
    """Reports whether a function is of a kind."""
    return bool(f.__code__.co_flags & flag)


def parameters(f):
    """Lists the names of a function's parameters; a decorated function has those of the function that it wraps."""
    while hasattr(f, "__wrapped__"):
        f = f.__wrapped__
    code = f.__code__
    return list(code.co_varnames[:code.co_argcount + code.co_kwonlyargcount])


def cleandoc(text):
    """Returns a docstring without its indentation, None if there is none."""
    if not text:
        return None
    first, *rest = text.expandtabs().split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in rest if line.strip()), default=0)
    return "\n".join([first.lstrip(), *(line[margin:] for line in rest)]).strip("\n")
