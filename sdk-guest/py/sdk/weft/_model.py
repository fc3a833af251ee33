"""Models: classes whose annotations are their fields."""

import copy
import datetime
import enum
import types
import typing

from . import _types
from ._types import _REST, MISSING, FieldInfo, converter, default_wire, duration, limited, schema, zero
from .errors import ValidationError, WorkflowValidationError

_SIMPLE = (str, int, float, bool, bytes, type(None), enum.Enum, datetime.datetime, datetime.date)


class Plan:
    """What is known of a model's fields, made at the first use."""

    __slots__ = ("fields", "names", "hints", "private", "absent", "before", "after", "extra", "frozen", "hidden", "open", "keyed", "informed")

    def __init__(self, cls):
        infos, self.private = {}, {}
        for base in reversed(cls.__mro__):
            for name, info in base.__dict__.get("__weft_fields__", {}).items():
                (self.private if info.private else infos)[name] = info
        try:
            hints = typing.get_type_hints(cls, include_extras=True)
        except NameError as e:
            raise WorkflowValidationError(f"{cls.__name__}: the type {e.name} of a field is not known: import it") from None
        bound = _bound_of(cls)
        self.hints = {name: _bind(hints[name], bound) if bound else hints[name] for name in infos}
        for name, info in infos.items():
            info.annotation = self.hints[name]
        checks, self.before, self.after = _validators(cls)
        for name in checks:
            if name != "*" and name not in infos:
                raise WorkflowValidationError(f"{cls.__name__}: field_validator({name!r}): there is no field {name}")
        config = _config_of(cls)
        self.extra, self.frozen = config.get("extra"), config.get("frozen", False)
        strip = config.get("str_strip_whitespace", False)
        self.fields = [_field(name, info, self.hints[name], cls, checks.get(name, []) + checks.get("*", []), strip) for name, info in infos.items()]
        self.informed = any(check.f.__code__.co_argcount > 2 for named in checks.values() for check in named)
        if hasattr(cls, "model_post_init"):
            self.after.append(_post_init)
        self.names = frozenset(infos)
        self.hidden = {*self.private, *(name for base in cls.__mro__ for name, v in base.__dict__.items() if type(v).__name__ == "cached_property")}
        self.keyed = [name for name, t in self.hints.items() if _types.keyed(t)]  # fields whose dicts need keys of text to leave the step
        self.open = self.extra == "allow" or getattr(cls, "__weft_open__", False)  # it takes any attribute
        self.absent = frozenset(name for name, t in self.hints.items() if typing.get_origin(t) is typing.NotRequired)


def _post_init(self):
    self.model_post_init(None)
    return self


def _bound_of(cls):
    """Returns the types that a class has for the type variables of its bases."""
    bound = {}
    for base in cls.__mro__:
        for variable, t in base.__dict__.get("__weft_types__", {}).items():
            bound.setdefault(variable, t)
    return bound


def _bind(hint, bound):
    """Puts types in the place of type variables."""
    if isinstance(hint, typing.TypeVar):
        return bound.get(hint, hint)
    variables = getattr(hint, "__parameters__", ()) if typing.get_origin(hint) is not None else ()
    return hint[tuple(bound.get(v, v) for v in variables)] if variables else hint


def _field(name, info, hint, cls, checks, strip):
    factory = info.default_factory
    default = info.default
    if factory is None and default is not MISSING and not isinstance(default, _SIMPLE):
        factory = lambda: copy.deepcopy(default)
    convert = converter(hint)
    convert = limited(_stripped(convert) if strip else convert, info)
    return name, _checked(convert, cls, checks) if checks else convert, default, factory, info


def _stripped(convert):
    return lambda v, path: (convert or _any)(v.strip() if isinstance(v, str) else v, path)


def _any(v, path):
    return v


# ---- validators


class _Validator:
    """A function of a model that field_validator or model_validator has marked."""

    def __init__(self, f, fields, mode):
        self.f, self.fields, self.mode = f.__func__ if isinstance(f, (classmethod, staticmethod)) else f, fields, mode

    def __get__(self, obj, cls=None):
        return self.f.__get__(cls if obj is None else obj)


def field_validator(*fields, mode="after"):
    """Makes a class method check or change the values of fields: it takes the value and returns it, or raises a ValueError.

    mode is "before" or "after" the conversion to the field's type. "*" means all fields. Defaults are not checked.
    """
    if not fields or not all(isinstance(name, str) for name in fields):
        raise WorkflowValidationError("field_validator takes the names of fields: @field_validator(\"name\")")
    return _marked("field_validator", fields, mode)


def model_validator(*, mode):
    """Makes a method check a whole model: with mode="after" a method that returns self, with mode="before" a class method that takes
    the values as a dict and returns a dict. It raises a ValueError if they are wrong."""
    return _marked("model_validator", (), mode)


def _marked(what, fields, mode):
    if mode not in ("before", "after"):
        raise WorkflowValidationError(f"{what} has no mode {mode!r} in a step: use \"before\" or \"after\"")
    return lambda f: _Validator(f, fields, mode)


def _validators(cls):
    """Returns the validators of a class by their fields, and those of whole models before and after."""
    found = {}
    for base in reversed(cls.__mro__):
        found.update({name: v for name, v in base.__dict__.items() if isinstance(v, _Validator) or name in found})
    checks, before, after = {}, [], []
    for v in found.values():
        if isinstance(v, _Validator):
            for name in v.fields:
                checks.setdefault(name, []).append(v)
            if not v.fields:
                (before if v.mode == "before" else after).append(v.f)
    return checks, before, after


def _tried(path, f, *args):
    """Calls a validator: the errors that it raises name the place of the value."""
    try:
        return f(*args)
    except ValidationError:
        raise
    except (ValueError, AssertionError) as e:
        raise ValidationError(f"{path}: {e}", path) from None


def _checked(convert, cls, checks):
    def converted(v, path):
        for check in checks:
            if check.mode == "before":
                v = _call(path, check, cls, v)
        if convert:
            v = convert(v, path)
        for check in checks:
            if check.mode == "after":
                v = _call(path, check, cls, v)
        return v
    return converted


def _call(path, check, cls, v):
    if check.f.__code__.co_argcount > 2:  # it takes pydantic's ValidationInfo too
        return _tried(path, check.f, cls, v, types.SimpleNamespace(
            field_name=path.rpartition(".")[2], data=_making[-1] if _making else {}, mode="python", config=None, context=None))
    return _tried(path, check.f, cls, v)


_making = []  # the fields so far of the models that are being made, whose validators take a ValidationInfo

_IGNORED = ("arbitrary_types_allowed", "title", "json_schema_extra", "protected_namespaces", "use_attribute_docstrings", "validate_default",
            "populate_by_name", "validate_by_name")


def _config_of(cls):
    """Returns the options of a class that the SDK has: extra, frozen, str_strip_whitespace."""
    options = {}
    for base in reversed(cls.__mro__):
        for name, value in (base.__dict__.get("model_config") or {}).items():
            if name == "extra" and value in ("ignore", "forbid", "allow") or name in ("frozen", "str_strip_whitespace"):
                options[name] = value
            elif name not in _IGNORED and value is not False:
                raise WorkflowValidationError(f"{cls.__name__}: model_config has no {name}={value!r} in a step: it has extra=\"ignore\", \"forbid\" or \"allow\", "
                                              "frozen and str_strip_whitespace")
    return options


def ConfigDict(**options):
    """Makes the model_config of a model: model_config = ConfigDict(extra="forbid")."""
    return options


def plan_of(cls):
    """Returns the plan of a class."""
    plan = cls.__dict__.get("__weft_plan__")
    if plan is None:
        plan = Plan(cls)
        cls.__weft_plan__ = plan
    return plan


def _hash(self):
    return hash((type(self), *self._visible().values()))


_kinds = {}  # generic models with types, by model and types


class _Fields:
    """The fields of a model class by their names."""

    def __get__(self, obj, cls=None):
        return {name: info for name, *_, info in plan_of(cls).fields}


class BaseModel:
    """A class whose annotations are its fields, with the methods of pydantic's models that steps need."""

    __weft_fields__ = {}

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        fields = {}
        for name in cls.__dict__.get("__annotations__", {}):
            hint = cls.__dict__["__annotations__"][name]
            if name == "model_config" or typing.get_origin(hint) is typing.ClassVar or isinstance(hint, str) and "ClassVar" in hint:
                continue
            value = cls.__dict__.get(name, MISSING)
            if isinstance(value, (types.FunctionType, property, classmethod, staticmethod, _Validator)):
                continue
            info = value if isinstance(value, FieldInfo) else FieldInfo(value)
            if name.startswith("_"):
                info.private = True
            fields[name] = info
            if value is not MISSING:
                delattr(cls, name)
        cls.__weft_fields__ = fields
        if any((base.__dict__.get("model_config") or {}).get("frozen") for base in cls.__mro__) and "__hash__" not in cls.__dict__:
            cls.__hash__ = _hash

    def __class_getitem__(cls, types):
        """Returns the class with types in the place of its type variables: Page[int] for class Page(BaseModel, Generic[T])."""
        if not issubclass(cls, typing.Generic):
            raise TypeError(f"{cls.__name__} takes no types: write class {cls.__name__}(BaseModel, Generic[T])")
        alias = super().__class_getitem__(types)
        if alias.__parameters__:
            return alias
        kinds = _kinds.setdefault(cls, {})
        if alias.__args__ not in kinds:
            name = f"{cls.__name__}[{', '.join(map(_types.shown, alias.__args__))}]"
            kinds[alias.__args__] = type(cls)(name, (cls,), {"__module__": cls.__module__, "__weft_types__": dict(zip(cls.__parameters__, alias.__args__))})
        return kinds[alias.__args__]

    def __init__(self, /, **values):
        cls = type(self)
        plan = cls.__dict__.get("__weft_plan__") or plan_of(cls)
        d = self.__dict__
        for check in plan.before:
            values = dict(_tried(cls.__name__, check, cls, values))
        if plan.informed:
            _making.append(d)
        try:
            for name, convert, default, factory, _ in plan.fields:
                if name in values:
                    v = values.pop(name)
                    d[name] = convert(v, name) if convert else v
                elif factory:
                    d[name] = factory()
                elif default is not MISSING:
                    d[name] = default
                elif name not in plan.absent:
                    raise ValidationError(f"{cls.__name__}: the field {name} is missing", name)
        finally:
            if plan.informed:
                _making.pop()
        for name, info in plan.private.items():
            d[name] = values.pop(name) if name in values else info.default_factory() if info.default_factory else None if info.default is MISSING else info.default
        if values:
            self._take_rest(values)
        for check in plan.after:
            if _tried(cls.__name__, check, self) is not self:
                raise WorkflowValidationError(f"{cls.__name__}: the model_validator {check.__name__} must return self")

    def _take_rest(self, values):
        """Takes values that are not declared as fields. A model leaves them out, but for those that the state has."""
        extra = plan_of(type(self)).extra
        if extra == "forbid":
            raise ValidationError(f"{type(self).__name__} has no field {' and no field '.join(values)}", next(iter(values)))
        if extra == "allow":
            self.__dict__.update(values)
        elif _types.whole:
            self.__dict__[_REST] = values

    def __getattr__(self, name):
        cls = type(self)
        if not name.startswith("__") and name in plan_of(cls).absent:
            return None
        raise AttributeError(f"'{cls.__name__}' object has no attribute '{name}'", name=name, obj=self)

    def __setattr__(self, name, value):
        cls = type(self)
        plan = plan_of(cls)
        if plan.frozen:
            raise ValidationError(f"{name}: {cls.__name__} is frozen", name)
        if name in plan.names:
            if isinstance(value, dict):
                for field, convert, *_ in plan.fields:
                    if field == name and convert:
                        value = convert(value, name)  # a dict becomes the model that is declared
        elif not (plan.open or name.startswith("_") or hasattr(cls, name)):
            raise ValueError(f'"{cls.__name__}" object has no field "{name}"')
        object.__setattr__(self, name, value)

    def __eq__(self, other):
        return type(self) is type(other) and self._visible() == other._visible()

    __hash__ = None

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self._visible().items())})"

    def __str__(self):
        return " ".join(f"{k}={v!r}" for k, v in self._visible().items())

    def __iter__(self):
        return iter(self._visible().items())

    def _visible(self):
        d, hidden = self.__dict__, plan_of(type(self)).hidden
        return {k: v for k, v in d.items() if k not in hidden and k != _REST} if hidden or _REST in d else d

    model_fields = _Fields()

    @property
    def model_extra(self):
        """The values that are not declared as fields, if the model takes these."""
        plan = plan_of(type(self))
        return {k: v for k, v in self._visible().items() if k not in plan.names} if plan.open else None

    # ---- the methods of pydantic's models

    @classmethod
    def model_validate(cls, value):
        """Makes a model of a dict, or returns the model."""
        if isinstance(value, cls):
            return value
        if not isinstance(value, dict):
            raise _types.wrong(cls.__name__, "a dict", value)
        return cls(**value)

    @classmethod
    def model_validate_json(cls, text):
        """Makes a model of a text in JSON."""
        import json
        try:
            value = json.loads(text)
        except ValueError as e:
            raise ValidationError(f"{cls.__name__}: the text is not JSON: {e}") from None
        return cls.model_validate(value)

    @classmethod
    def model_rebuild(cls, **options):
        """Does nothing: types are looked up at the first use of a model."""

    @classmethod
    def model_construct(cls, **values):
        """Makes a model without checks."""
        self = cls.__new__(cls)
        self.__dict__.update(values)
        return self

    @classmethod
    def model_json_schema(cls):
        """Returns the JSON Schema of the model."""
        return {**schema_of(cls), "title": cls.__name__}

    def model_dump(self, mode="python", include=None, exclude=None, exclude_none=False, exclude_unset=False, exclude_defaults=False, by_alias=False):
        """Returns the fields as a dict; models among the values become dicts too.

        exclude_none and exclude_defaults count for these models too. include and exclude are names of fields, or dicts of these, whose
        values select the fields of models in them.
        """
        if exclude_unset or by_alias:
            raise TypeError("model_dump has no exclude_unset and no by_alias in a step: exclude_defaults leaves out values that equal the default")
        left_out = {}
        if exclude_defaults:
            left_out = {name: factory() if factory else default for name, _, default, factory, _ in plan_of(type(self)).fields}
        out = {}
        for k, v in self._visible().items():
            if (include is None or k in include) and not (exclude and k in exclude and _part(exclude, k) is None) and not (exclude_none and v is None) \
                    and not (k in left_out and left_out[k] == v):
                parts = {"include": _part(include, k), "exclude": _part(exclude, k)} if isinstance(v, BaseModel) else {}
                out[k] = dumped(v, mode == "json", exclude_none=exclude_none, exclude_defaults=exclude_defaults, **parts)
        return out

    def model_dump_json(self, indent=None, **options):
        """Returns the fields as JSON."""
        import json
        separators = None if indent else (",", ":")
        return json.dumps(self.model_dump(mode="json", **options), indent=indent, separators=separators, ensure_ascii=False)

    def model_copy(self, *, update=None, deep=False):
        """Returns a copy with other values of some fields."""
        new = type(self).__new__(type(self))
        new.__dict__.update(copy.deepcopy(self.__dict__) if deep else self.__dict__)
        new.__dict__.update(update or {})
        return new

    dict = model_dump
    json = model_dump_json
    copy = model_copy


def _part(selected, k):
    """Returns what include or exclude select of the model in a field; None if they select all of it."""
    part = selected.get(k) if isinstance(selected, dict) else None
    return part if isinstance(part, (dict, set)) else None


def dumped(v, json=False, **options):
    """Returns a value without models in it."""
    if isinstance(v, BaseModel):
        return v.model_dump(mode="json" if json else "python", **options)
    if hasattr(type(v), "__dataclass_fields__"):
        v = {f.name: getattr(v, f.name) for f in _types.dataclass_fields(v)}
    if json and isinstance(v, bytes):
        return v.decode()
    if type(v) is dict:
        return {_key(k) if json else k: dumped(x, json, **options) for k, x in v.items()}
    if isinstance(v, (list, tuple, set, frozenset)) and not hasattr(v, "_fields"):
        items = [dumped(x, json, **options) for x in v]
        return items if json else type(v)(items)
    if not json or v is None or isinstance(v, (str, int, float, bool)) and not isinstance(v, enum.Enum):
        return v
    p = plain(v)
    return p.decode() if isinstance(p, bytes) else p if p is NotImplemented else dumped(p, True, **options)


class whole:
    """Within its block, models that are made of the state keep the entries that they do not declare, and give them to the state again."""

    def __enter__(self):
        _types.whole = True

    def __exit__(self, *error):
        _types.whole = False


def _key(k):
    """Returns a key of a dict as text, as JSON has it."""
    k = k if isinstance(k, str) and not isinstance(k, enum.Enum) else dumped(k, True)
    return k if isinstance(k, str) else str(k).lower() if isinstance(k, bool) else str(k)


def _with_keys(v):
    """Returns a value in whose dicts the keys are text."""
    if isinstance(v, dict):
        return {_key(k): _with_keys(x) for k, x in v.items()}
    return [_with_keys(x) for x in v] if isinstance(v, (list, tuple)) else v


def plain(v):
    """Returns a value that the engine can encode, for an object that it cannot; NotImplemented if there is none."""
    if isinstance(v, BaseModel):
        values = {**v.__dict__[_REST], **v._visible()} if _types.whole and _REST in v.__dict__ else v._visible()
        names = plan_of(type(v)).keyed
        return {**values, **{name: _with_keys(values[name]) for name in names if name in values}} if names else values
    if isinstance(v, enum.Enum):
        return v.value
    if isinstance(v, dict):
        return dict(v)
    if isinstance(v, (set, frozenset)):
        try:
            return sorted(v)
        except TypeError:
            return list(v)
    if isinstance(v, str):
        return str.__str__(v)
    if isinstance(v, int):
        return int(v)
    if isinstance(v, float):
        return float(v)
    if isinstance(v, (list, bytearray, memoryview)):
        return list(v) if isinstance(v, list) else bytes(v)
    if isinstance(v, datetime.timedelta):
        return duration(v)
    if isinstance(v, (datetime.datetime, datetime.time)):
        text = v.isoformat()
        return text[:-6] + "Z" if text.endswith("+00:00") else text
    if isinstance(v, datetime.date):
        return v.isoformat()
    if hasattr(type(v), "__dataclass_fields__"):
        return {**(getattr(v, _REST, {}) if _types.whole else {}), **{f.name: getattr(v, f.name) for f in _types.dataclass_fields(v)}}
    t = type(v)
    if t.__module__ in ("uuid", "decimal", "pathlib", "fractions", "ipaddress"):
        return str(v)
    if t.__module__ == "collections" and t.__name__ == "deque" or t.__module__ == "builtins" and t.__name__ in ("dict_keys", "dict_values", "range"):
        return list(v)
    return NotImplemented


def schema_of(cls):
    """Returns the JSON Schema of a model, without a title. A model within itself is any map."""
    if cls in _describing:
        return {"type": "object"}
    _describing.append(cls)
    try:
        return _schema_of(cls)
    finally:
        _describing.pop()


_describing = []  # the models whose schemas are being made


def _schema_of(cls):
    properties, required = {}, []
    plan = plan_of(cls)
    for name, _, default, factory, info in plan.fields:
        hint = plan.hints[name]
        s = schema(hint)
        s = {**s, **_types.limits(info, s)}
        if default is not MISSING:
            s["default"] = dumped(default_wire(default, hint), True)
        elif factory is None and name not in plan.absent:
            required.append(name)
        properties[name] = s
    s = _types.required_list(properties, required)
    return {**s, "additionalProperties": False} if plan.extra == "forbid" else s


def initial_of(cls):
    """Returns the fields of a state that nobody has set."""
    out = {}
    plan = plan_of(cls)
    for name, _, default, factory, _ in plan.fields:
        if name in plan.absent:
            continue
        value = factory() if factory else default if default is not MISSING else zero(plan.hints[name])
        out[name] = dumped(default_wire(value, plan.hints[name]), True)
    return out


def _model(base):
    if not issubclass(base, BaseModel):
        return None

    def convert(v, path):
        if isinstance(v, base):
            return v
        if not isinstance(v, dict):
            raise _types.wrong(path, "a " + base.__name__, v)
        try:
            return base(**v)
        except ValidationError as e:
            raise ValidationError(f"{path}: {e}", f"{path}.{e.path}" if e.path else path) from None
    return convert, lambda: schema_of(base), lambda: initial_of(base)


_types._models.append(_model)
