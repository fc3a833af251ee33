"""Follows a run over a crash of its server: python follow.py URL

Says "asked" when the run asks, waits for a line on standard input, answers, and
says which events came and how the run ended, as JSON.
"""

import asyncio
import json
import sys

from llama_agents.client import WorkflowClient
from workflows.events import HumanResponseEvent


async def main(url):
    client = WorkflowClient(base_url=url)
    handler = await client.run_workflow_nowait("human")
    stream, types, numbers = client.get_workflow_events(handler.handler_id), [], []
    async for event in stream:
        types.append(event.type)
        numbers.append(stream.last_sequence)
        if event.type == "InputRequiredEvent":
            print("asked", flush=True)
            await asyncio.to_thread(sys.stdin.readline)
            await client.send_event(handler.handler_id, HumanResponseEvent(response="after the crash"))
    done = await client.get_handler(handler.handler_id)
    print(json.dumps({"types": types, "numbers": numbers, "result": done.result.value["result"]}), flush=True)


asyncio.run(main(sys.argv[1]))
