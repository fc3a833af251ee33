"""The server under test, and what the checks share."""

import asyncio
import itertools
import unittest

import httpx
from llama_agents.client import WorkflowClient

URL = ""  # set by run.py

_ids = itertools.count(1)


class Check(unittest.IsolatedAsyncioTestCase):
    """A group of checks; each gets a client of its own.

    It keeps its connections and is patient, as a busy machine may take more than
    the 5 s that a client waits which is given a base_url only.
    """

    maxDiff = None

    async def asyncSetUp(self):
        self.http = httpx.AsyncClient(base_url=URL, timeout=120)
        self.client = WorkflowClient(httpx_client=self.http)

    async def asyncTearDown(self):
        await self.http.aclose()

    def new_id(self):
        """A handler id that no other check has."""
        return f"{type(self).__name__}-{next(_ids)}"

    async def refused(self, status, text, call):
        """The call fails with the status, and the exception shows the text."""
        with self.assertRaises(httpx.HTTPStatusError) as caught:
            await call
        self.assertEqual(caught.exception.response.status_code, status, caught.exception)
        self.assertIn(text, str(caught.exception))
        return caught.exception.response.json()

    async def ended(self, handler_id):
        """The record of a run, as soon as its stream is over."""
        async for _ in self.client.get_workflow_events(handler_id):
            pass
        return await self.client.get_handler(handler_id)

    async def until(self, stream, name):
        """Reads a stream up to an event of a type; gives all that was read."""
        seen = []
        async for event in stream:
            seen.append(event)
            if event.type == name:
                return seen
        self.fail(f"the stream ends without {name}: {[e.type for e in seen]}")

    async def ask(self, workflow, **fields):
        """Starts a workflow that asks a person; gives its id when it has asked."""
        handler = await self.client.run_workflow_nowait(workflow, start_event=fields)
        await self.until(self.client.get_workflow_events(handler.handler_id), "InputRequiredEvent")
        return handler.handler_id


class Line:
    """A connection to the server that can be cut: a proxy on a port of its own.

    It cuts each of the first `cuts` connections when so many events have come
    through. `requests` holds the request lines; `streaming` is set when the first
    answer has begun.
    """

    def __init__(self, after, cuts):
        self.after, self.cuts, self.requests = after, cuts, []
        self.streaming = asyncio.Event()

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        port = self.server.sockets[0].getsockname()[1]
        self.client = WorkflowClient(base_url=f"http://127.0.0.1:{port}")
        return self

    async def __aexit__(self, *_):
        self.server.close()

    async def serve(self, reader, writer):
        target = httpx.URL(URL)
        head = await reader.readuntil(b"\r\n\r\n")
        self.requests.append(head.split(b"\r\n")[0].decode())
        cut = len(self.requests) <= self.cuts
        up_reader, up_writer = await asyncio.open_connection(target.host, target.port)
        try:
            lines = [line for line in head.split(b"\r\n")[:-2] if not line.lower().startswith((b"host:", b"connection:"))]
            lines += [f"Host: {target.host}:{target.port}".encode(), b"Connection: close", b"", b""]
            up_writer.write(b"\r\n".join(lines))
            events = 0
            while chunk := await up_reader.readline():
                writer.write(chunk)
                await writer.drain()
                if chunk == b"\r\n":  # the headers' end
                    self.streaming.set()
                events += chunk.startswith(b"data:")
                if cut and events == self.after:
                    return  # in the middle of an answer in chunks
        finally:
            up_writer.close()
            writer.close()
