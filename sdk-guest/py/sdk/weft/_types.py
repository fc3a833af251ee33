"""Types of Python as converters of values and as JSON Schema."""

import datetime
import enum
import re
import types
import typing

from .errors import ValidationError

MISSING = type("MISSING", (), {"__repr__": lambda self: "MISSING", "__bool__": lambda self: False})()


_LIMITS = ("ge", "gt", "le", "lt", "multiple_of", "min_length", "max_length", "pattern")


class FieldInfo:
    """What a model knows of a field beside its type."""

    __slots__ = ("default", "default_factory", "description", *_LIMITS, "private", "annotation")

    def __init__(self, default=MISSING, default_factory=None, description=None, private=False, **limits):
        self.default = MISSING if default is ... else default
        self.default_factory = default_factory
        self.description = description
        self.private = private
        self.annotation = None
        for name in _LIMITS:
            setattr(self, name, limits.get(name))

    def is_required(self):
        """Reports whether the field has no default."""
        return self.default is MISSING and self.default_factory is None


def Field(default=MISSING, *, default_factory=None, description=None, **limits):
    """Describes a field of a model: its default, and limits of its values (ge, gt, le, lt, multiple_of, min_length, max_length, pattern).

    A discriminator changes nothing: a value becomes the member of a union that it fits best.
    """
    for name in limits:
        if name in ("alias", "validation_alias", "serialization_alias"):
            raise TypeError(f"Field has no {name} in a step: give the field the name that it has in the JSON")
        if name not in _LIMITS and name not in ("title", "examples", "repr", "deprecated", "discriminator"):
            raise TypeError(f"Field has no {name} in a step: it has default, default_factory, description, {', '.join(_LIMITS)}")
    return FieldInfo(default, default_factory, description, **limits)


def PrivateAttr(default=MISSING, *, default_factory=None):
    """Declares an attribute of a model that does not leave the step."""
    return FieldInfo(default, default_factory, private=True)


def shown(t):
    """Returns a type as messages show it."""
    return t.__name__ if isinstance(t, type) and not typing.get_args(t) else str(t).replace("typing.", "")


def wrong(path, want, value):
    got = repr(value)
    return ValidationError(f"{path} must be {want}, and {got if len(got) <= 80 else got[:77] + '...'} is of the type {type(value).__name__}", path)


# ---- converters


def _text(v, path):
    if isinstance(v, str):
        return v
    raise wrong(path, "a str", v)


def _int(v, path):
    if type(v) is int:
        return v
    if isinstance(v, int) or isinstance(v, float) and v.is_integer():
        return int(v)
    if isinstance(v, str):
        try:
            return int(v)
        except ValueError:
            pass
    raise wrong(path, "an int", v)


def _float(v, path):
    if isinstance(v, (int, float)):
        return float(v)
    if isinstance(v, str):
        try:
            return float(v)
        except ValueError:
            pass
    raise wrong(path, "a float", v)


_BOOLS = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False, "on": True, "off": False}


def _bool(v, path):
    if isinstance(v, bool):
        return v
    known = _BOOLS.get(str(v).lower()) if isinstance(v, (int, float, str)) else None
    if known is None:
        raise wrong(path, "a bool", v)
    return known


def _bytes(v, path):
    if isinstance(v, (bytes, bytearray)):
        return bytes(v)
    if isinstance(v, str):
        return v.encode()
    raise wrong(path, "bytes", v)


def _none(v, path):
    if v is None:
        return v
    raise wrong(path, "None", v)


def _parsed(t, parse):
    def convert(v, path):
        if isinstance(v, t):
            return v
        try:
            return parse(v)
        except (ValueError, TypeError, ArithmeticError):
            raise wrong(path, "a " + t.__name__, v) from None
    return convert


def _datetime(v):
    if isinstance(v, (int, float)):
        return datetime.datetime.fromtimestamp(v, datetime.timezone.utc)
    if isinstance(v, datetime.date):
        return datetime.datetime(v.year, v.month, v.day)
    return datetime.datetime.fromisoformat(v)


def _date(v):
    at = datetime.datetime.fromisoformat(v)
    if at.time() != datetime.time():
        raise ValueError
    return at.date()


_DURATION = r"([+-])?P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?"
_CLOCK = r"([+-])?()(?:(\d+) days?,? )?(\d+):(\d\d)(?::(\d\d(?:\.\d+)?))?"


def _timedelta(v):
    if not isinstance(v, str):
        return datetime.timedelta(seconds=v)
    m = re.fullmatch(_DURATION, v) or re.fullmatch(_CLOCK, v)
    if m is None or v[-1] in "PT":
        return datetime.timedelta(seconds=float(v))
    sign, *parts = m.groups()
    weeks, days, hours, minutes, seconds = (float(p) if p else 0 for p in parts)
    d = datetime.timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    return -d if sign == "-" else d


def duration(d):
    """Returns a timedelta as ISO 8601 has it: P1DT2H3M4.5S."""
    if d < datetime.timedelta():
        return "-" + duration(-d)
    minutes, seconds = divmod(d.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    second = f"{seconds}.{d.microseconds:06}".rstrip("0").rstrip(".") if d.microseconds else str(seconds)
    time = "".join(n + unit for n, unit in ((str(hours), "H"), (str(minutes), "M"), (second, "S")) if n != "0")
    return "P" + (f"{d.days}D" if d.days else "") + ("T" + time if time or not d.days else "") + ("0S" if not time and not d.days else "")


_plain = {
    str: _text, int: _int, float: _float, bool: _bool, bytes: _bytes, type(None): _none, None: _none,
    datetime.datetime: _parsed(datetime.datetime, _datetime), datetime.date: _parsed(datetime.date, _date),
    datetime.time: _parsed(datetime.time, datetime.time.fromisoformat), datetime.timedelta: _parsed(datetime.timedelta, _timedelta),
}


def _items(make, item):
    def convert(v, path):
        if isinstance(v, (str, bytes, dict)) or not hasattr(v, "__iter__"):
            raise wrong(path, "a " + make.__name__, v)
        if item is None:
            return v if type(v) is make else make(v)
        return make([item(x, f"{path}[{i}]") for i, x in enumerate(v)])
    return convert


def _fixed(items):
    def convert(v, path):
        if not isinstance(v, (list, tuple)) or len(v) != len(items):
            raise wrong(path, f"a tuple of {len(items)} items", v)
        return tuple(f(x, f"{path}[{i}]") if f else x for i, (f, x) in enumerate(zip(items, v)))
    return convert


def _mapping(make, key, item):
    def convert(v, path):
        if not isinstance(v, dict):
            raise wrong(path, "a dict", v)
        if key is None and item is None:
            return v if make is dict else make(v)
        return make((key(k, f"{path} (a key)") if key else k, item(x, f"{path}.{k}") if item else x) for k, x in v.items())
    return convert


def _union(members):
    exact = {t for t in members if isinstance(t, type)}
    converters = [converter(t) for t in members]
    optional = len(members) == 2 and type(None) in members
    several = sum(hasattr(t, "__weft_fields__") for t in members) > 1

    def convert(v, path):
        if type(v) in exact:
            return converters[members.index(type(v))](v, path) if converters[members.index(type(v))] else v
        if several and type(v) is dict:
            return best(v, path)
        failed = None
        for t, f in zip(members, converters):
            if f is None:
                return v
            try:
                return f(v, path)
            except ValidationError as e:
                failed = e if t not in (None, type(None)) else failed
        if optional and v is not None:
            raise failed  # it says more than that None would do too
        raise wrong(path, " or ".join(shown(t) for t in members), v)

    def best(v, path):
        """Makes the model that has most of the entries as fields; the first one of several."""
        found, most = None, -1
        for t, f in zip(members, converters):
            try:
                made = f(v, path) if f else v
            except ValidationError:
                continue
            known = len(made.__dict__.keys() & v.keys()) if hasattr(t, "__weft_fields__") else 0
            if known > most:
                found, most = made, known
        if most < 0:
            raise wrong(path, " or ".join(shown(t) for t in members), v)
        return found
    return convert


def _literal(values):
    def convert(v, path):
        for x in values:
            if x == v and type(x) is type(v):
                return v
        raise wrong(path, "one of " + ", ".join(map(repr, values)), v)
    return convert


def _enum(t):
    def convert(v, path):
        try:
            return t(v)
        except ValueError:
            raise wrong(path, "one of " + ", ".join(repr(m.value) for m in t), v) from None
    return convert


def dataclass_fields(t):
    import dataclasses  # the program has imported it, as it has a dataclass
    return dataclasses.fields(t)


def _dataclass(t):
    plan = None

    def convert(v, path):
        nonlocal plan
        if isinstance(v, t):
            return v
        if not isinstance(v, dict):
            raise wrong(path, "a " + t.__name__, v)
        if plan is None:
            hints = typing.get_type_hints(t, include_extras=True)
            plan = {f.name: converter(hints[f.name]) for f in dataclass_fields(t) if f.init}
        try:
            made = t(**{k: plan[k](x, f"{path}.{k}") if plan[k] else x for k, x in v.items() if k in plan})
        except TypeError as e:
            raise ValidationError(f"{path}: {e}", path) from None
        rest = {k: x for k, x in v.items() if k not in plan} if whole else None
        if rest and hasattr(made, "__dict__"):
            object.__setattr__(made, _REST, rest)
        return made
    return convert


def _instance(t):
    def convert(v, path):
        if isinstance(v, t):
            return v
        raise wrong(path, "a " + t.__name__, v)
    return convert


def _limited(f, info):
    def convert(v, path):
        if f:
            v = f(v, path)
        for name, holds, text in (
            ("ge", lambda a, b: a >= b, "at least"), ("gt", lambda a, b: a > b, "more than"), ("le", lambda a, b: a <= b, "at most"),
            ("lt", lambda a, b: a < b, "less than"),
        ):
            limit = getattr(info, name)
            if limit is not None and v is not None and not holds(v, limit):
                raise ValidationError(f"{path} must be {text} {limit}, and it is {v!r}", path)
        if info.multiple_of is not None and v is not None and v % info.multiple_of:
            raise ValidationError(f"{path} must be a multiple of {info.multiple_of}, and it is {v!r}", path)
        if info.min_length is not None and len(v) < info.min_length or info.max_length is not None and len(v) > info.max_length:
            raise ValidationError(f"{path} has {len(v)} items: from {info.min_length or 0} to {info.max_length or 'any number'} are allowed", path)
        if info.pattern is not None and isinstance(v, str) and not re.search(info.pattern, v):
            raise ValidationError(f"{path} does not match {info.pattern!r}: {v!r}", path)
        return v
    return convert


def limited(f, info):
    """Adds the limits of a field to a converter."""
    if all(getattr(info, name) is None for name in _LIMITS):
        return f
    return _limited(f, info)


_REST = "__weft_rest__"  # the attribute that holds the entries of the state which a model or a dataclass does not declare
whole = False  # models and dataclasses are made of the state, or written to it: they keep the entries that they do not declare
_models = []  # functions that give a converter, and a schema, for a class of theirs


def _class(t, origin, args):
    """Returns the class of a type, for a generic model with types that of the models with these."""
    if hasattr(origin, "__weft_fields__"):
        made = origin[args]
        return made if isinstance(made, type) else origin
    return origin or t


def converter(t):
    """Returns the function that converts and checks a value of a type, given the value and its place; None for any value."""
    if t in _plain if isinstance(t, type) or t is None else False:
        return _plain[t]
    origin, args = typing.get_origin(t), typing.get_args(t)
    if origin is typing.Annotated:
        f = converter(args[0])
        for extra in args[1:]:
            if isinstance(extra, FieldInfo):
                f = limited(f, extra)
        return f
    if origin in (typing.NotRequired, typing.Required):
        return converter(args[0])
    if origin in (typing.Union, types.UnionType):
        return _union(args)
    if origin is typing.Literal:
        return _literal(args)
    base = _class(t, origin, args)
    if not isinstance(base, type) or base is typing.Any:
        return None
    for model in _models:
        if found := model(base):
            return found[0]
    if base is tuple and args and args[-1] is not ...:
        return _fixed([converter(a) for a in args])
    if base in (list, set, frozenset, tuple) or origin and base.__module__ == "collections.abc" and not issubclass(base, dict) and len(args) == 1:
        return _items(base if base in (list, set, frozenset, tuple) else list, converter(args[0]) if args else None)
    if issubclass(base, dict) or origin and base.__name__ in ("Mapping", "MutableMapping"):
        make = base if base in (dict,) or issubclass(base, dict) and not typing.is_typeddict(base) and not args else dict
        return _mapping(make if make is not dict and not args and make().__class__ is make else dict, *([converter(a) for a in args] if len(args) == 2 else (None, None)))
    if issubclass(base, enum.Enum):
        return _enum(base)
    if hasattr(base, "__dataclass_fields__"):
        return _dataclass(base)
    if base is object or getattr(base, "_is_protocol", False):
        return None
    special = {"UUID": str, "Decimal": str, "PosixPath": str, "Path": str, "PurePosixPath": str}
    if base.__name__ in special and base.__module__ in ("uuid", "decimal", "pathlib"):
        return _parsed(base, lambda v: base(str(v) if isinstance(v, float) else v))
    return _instance(base)


# ---- JSON Schema

def keyed(t):
    """Reports whether values of a type may have dicts with other keys than text."""
    args = typing.get_args(t)
    return len(args) == 2 and typing.get_origin(t) is dict and args[0] not in (str, typing.Any) or any(map(keyed, args))


_names = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null", None: "null"}
_formats = {datetime.datetime: "date-time", datetime.date: "date", datetime.time: "time"}


def schema(t):
    """Returns the JSON Schema of a type."""
    if isinstance(t, type) or t is None:
        if t in _names:
            return {"type": _names[t]}
        if t in _formats:
            return {"type": "string", "format": _formats[t]}
    origin, args = typing.get_origin(t), typing.get_args(t)
    if origin is typing.Annotated:
        s = schema(args[0])
        for extra in args[1:]:
            if isinstance(extra, FieldInfo):
                s = {**s, **limits(extra, s)}
        return s
    if origin in (typing.NotRequired, typing.Required):
        return schema(args[0])
    if origin in (typing.Union, types.UnionType):
        members = [schema(a) for a in args]
        return {} if {} in members else {"anyOf": members}
    if origin is typing.Literal:
        return _choice(list(args))
    base = _class(t, origin, args)
    if not isinstance(base, type) or base is typing.Any:
        return {}
    for model in _models:
        if found := model(base):
            return found[1]()
    if base is tuple and args and args[-1] is not ...:
        return {"type": "array", "minItems": len(args), "maxItems": len(args)}
    if base in (list, set, frozenset, tuple) or origin and base.__module__ == "collections.abc" and len(args) == 1:
        return {"type": "array", "items": schema(args[0])} if args else {"type": "array"}
    if typing.is_typeddict(base):
        return typed_dict(base)
    if issubclass(base, dict) or origin and base.__name__ in ("Mapping", "MutableMapping"):
        return {"type": "object", "additionalProperties": schema(args[1])} if len(args) == 2 else {"type": "object"}
    if issubclass(base, enum.Enum):
        return _choice([m.value for m in base])
    if hasattr(base, "__dataclass_fields__"):
        return of_dataclass(base)
    if base.__name__ == "Decimal" and base.__module__ == "decimal":
        return {"anyOf": [{"type": "number"}, {"type": "string"}]}
    if base.__name__ in ("UUID", "Path") and base.__module__ in ("uuid", "pathlib"):
        return {"type": "string"}
    return {}


def _choice(values):
    kinds = {_names.get(type(v)) for v in values}
    return {"type": kinds.pop(), "enum": values} if len(kinds) == 1 and None not in kinds else {"enum": values}


def limits(info, s):
    """Returns the keywords of a field's limits and description."""
    out = {}
    sized = {"array": "Items", "object": "Properties"}.get(s.get("type"), "Length")
    for name, keyword in (("ge", "minimum"), ("gt", "exclusiveMinimum"), ("le", "maximum"), ("lt", "exclusiveMaximum"), ("min_length", "min" + sized),
                          ("multiple_of", "multipleOf"), ("max_length", "max" + sized), ("pattern", "pattern"), ("description", "description")):
        v = getattr(info, name)
        if v is not None:
            out[keyword] = float(v) if s.get("type") == "number" and name in _LIMITS[:5] else v
    return out


def required_list(properties, required):
    s = {"type": "object", "properties": properties}
    if required:
        s["required"] = sorted(required, key=lambda name: (len(name.encode()), name))  # as CBOR orders keys
    return s


def typed_dict(t):
    hints = typing.get_type_hints(t, include_extras=True)
    return required_list({k: schema(v) for k, v in hints.items()}, [k for k in hints if k in t.__required_keys__])


def of_dataclass(t):
    hints = typing.get_type_hints(t, include_extras=True)
    properties, required = {}, []
    from dataclasses import MISSING as missing
    for f in dataclass_fields(t):
        s = schema(hints[f.name])
        if f.default is not missing:
            s = {**s, "default": default_wire(f.default, hints[f.name])}
        elif f.default_factory is missing:
            required.append(f.name)
        properties[f.name] = s
    return required_list(properties, required)


def default_wire(value, t):
    """Returns a default as a schema has it: a number of a float field is a float."""
    return float(value) if t is float and type(value) is int else value


_zeros = {str: "", int: 0, float: 0.0, bool: False, bytes: b""}


def zero(t):
    """Returns the value with which a field of a state begins that has no default."""
    if isinstance(t, type) and t in _zeros:
        return _zeros[t]
    origin, args = typing.get_origin(t), typing.get_args(t)
    if origin is typing.Annotated:
        return zero(args[0])
    base = _class(t, origin, args)
    if base in (list, set, frozenset):
        return []
    if base is tuple:
        return [zero(a) for a in args if a is not ...]
    if base is dict:
        return {}
    for model in _models:
        if isinstance(base, type) and (found := model(base)):
            return found[2]()
    return None
