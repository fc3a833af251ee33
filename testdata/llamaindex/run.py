"""run.py FOLDER: plays the cases of a folder with LlamaIndex Workflows, and prints them with what came of them, as cases of 'weft test'."""

import asyncio
import importlib.util
import json
import sys
import warnings

from pydantic import BaseModel
from workflows import Workflow
from workflows.events import Event, HumanResponseEvent, InputRequiredEvent, StartEvent, StopEvent


def load(path):
    spec = importlib.util.spec_from_file_location("program", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["program"] = module
    spec.loader.exec_module(module)
    return module


def fields(event):
    dumped = event.model_dump(mode="json")
    data = dumped.pop("_data", {})
    return {**dumped, **data}


def plain(value):
    if isinstance(value, Event):
        return fields(value)
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value


async def play(module, case):
    classes = [v for v in vars(module).values() if isinstance(v, type) and issubclass(v, Workflow) and v is not Workflow]
    starts = [v for v in vars(module).values() if isinstance(v, type) and issubclass(v, StartEvent) and v is not StartEvent]
    flow = classes[0](timeout=60)
    handler = flow.run(start_event=starts[0](**case["start"])) if starts else flow.run(**case["start"])
    answers = list(case.get("answers", []))
    stream = []
    async for event in handler.stream_events():
        if isinstance(event, StopEvent):
            continue
        stream.append({"type": type(event).__name__, "fields": fields(event)})
        if isinstance(event, InputRequiredEvent):
            handler.ctx.send_event(HumanResponseEvent(**answers.pop(0)["fields"]))
    case["result"] = plain(await handler)
    if stream:
        case["stream"] = stream
    return case


async def main(folder):
    warnings.simplefilter("ignore")
    module = load(folder + "/llamaindex.py")
    with open(folder + "/cases.json", encoding="utf-8") as f:
        cases = json.load(f)["cases"]
    print(json.dumps({"cases": [await play(module, case) for case in cases]}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
