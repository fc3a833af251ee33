"""Resources of the operator: HTTP, models, values by key."""

import json

from ._host import call
from .errors import WeftError
from .retry_policy import nanoseconds


def call_resource(name, method, payload):
    return call("call_resource", [name, method, payload], f'call "{name}"')


def _given(values):
    out = {k: v for k, v in values.items() if v is not None}
    if "timeout" in out:
        out["timeout"] = nanoseconds(out["timeout"])
    return out


class HTTPResponse:
    """An answer over HTTP: status, headers (lists of values by names in lower case), body."""

    def __init__(self, status, headers, body):
        self.status = self.status_code = status
        self.headers = headers
        self.body = self.content = body

    def header(self, name):
        """Returns the first value of a header, or ""."""
        return next(iter(self.headers.get(name.lower(), ())), "")

    @property
    def text(self):
        """The body as text."""
        return self.body.decode("utf-8", "replace")

    def json(self):
        """Returns the value of a body in JSON."""
        return json.loads(self.body)


class HTTP:
    """A granted resource of the kind "http". A place is a URL, or a path relative to the base_url of the resource."""

    def __init__(self, name):
        self._name = name

    async def request(self, method, where, *, query=None, headers=None, body=None, json=None, timeout=None, expect_success=False):
        """Makes a request and returns the answer, whatever its status. expect_success makes other statuses than 200 to 299 an error."""
        if json is not None:
            body, headers = _json(json), {"content-type": "application/json", **(headers or {})}
        place = "url" if where.startswith(("http://", "https://")) else "path"
        r = call_resource(self._name, "request", _given({
            "method": method, place: where, "query": query, "headers": headers, "body": body, "timeout": timeout,
            "expect_success": expect_success or None,
        }))
        return HTTPResponse(r["status"], r.get("headers") or {}, r.get("body") or b"")

    async def get(self, where, **options):
        return await self.request("GET", where, **options)

    async def post(self, where, **options):
        return await self.request("POST", where, **options)


def _json(value):
    return json.dumps(value, ensure_ascii=False).encode()


class ChatResponse:
    """A model's answer: content, value, refusal, tool_calls, finish_reason, model, usage."""

    def __init__(self, answer):
        self.value = self.refusal = None
        self.__dict__.update(answer)


class LLM:
    """A granted resource of the kind "llm"."""

    def __init__(self, name):
        self._name = name

    async def chat(self, messages, *, model=None, tools=None, tool_choice=None, schema=None, temperature=None, max_tokens=None, stop=None,
                   stream=None, timeout=None):
        """Sends a conversation, a text or a list of {"role": ..., "content": ...}, and returns the answer, which is recorded."""
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        if hasattr(schema, "model_json_schema"):
            schema = schema.model_json_schema()
        return ChatResponse(call_resource(self._name, "chat", _given({
            "messages": messages, "model": model, "tools": tools, "tool_choice": tool_choice, "schema": schema,
            "temperature": None if temperature is None else float(temperature), "max_tokens": max_tokens, "stop": stop, "stream": stream,
            "timeout": timeout,
        })))


_MOST_UPDATES = 100  # of one call of update, so that a step ends whatever other runs do


class KV:
    """A granted resource of the kind "kv": values by key that all runs of the tenant share."""

    def __init__(self, name):
        self._name = name

    def _call(self, method, payload):
        return call_resource(self._name, method, payload)

    async def get(self, key):
        """Returns a key's value and version. Without a value they are None and 0."""
        r = self._call("get", {"key": key})
        return (r["value"], r["version"]) if r else (None, 0)

    async def set(self, key, value):
        """Sets a key's value and returns the new version."""
        return self._call("set", {"key": key, "value": value})["version"]

    async def set_if(self, key, version, value):
        """Sets a key's value if its version is still the given one; otherwise the code is conflict."""
        return self._call("set", {"key": key, "value": value, "if_version": version})["version"]

    async def increment(self, key, by=1):
        """Adds to the whole number of a key and returns the sum. A key without a value counts as 0."""
        return self._call("increment", {"key": key, "by": by})["value"]

    async def delete(self, key):
        """Removes a key and reports whether it had a value."""
        return self._call("delete", {"key": key})["deleted"]

    async def delete_if(self, key, version):
        """Removes a key if its version is still the given one; otherwise the code is conflict."""
        self._call("delete", {"key": key, "if_version": version})

    async def list(self, *, prefix=None, after=None, limit=None, values=None):
        """Returns a page of keys in byte order, dicts of key, version and value, and the key after which the next page begins."""
        page = self._call("list", _given({"prefix": prefix, "after": after, "limit": limit, "values": values}))
        return page.get("items") or [], page.get("next") or ""

    async def update(self, key, change):
        """Sets a key's value to what a function gives for the present value, without interference from others, and returns it."""
        for tries in range(1, _MOST_UPDATES + 1):
            value, version = await self.get(key)
            new = change(value)
            try:
                await self.set_if(key, version, new)
                return new
            except WeftError as e:
                if e.code != "conflict" or tries == _MOST_UPDATES:
                    raise
