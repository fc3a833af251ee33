"""Streams of events, and events that are sent."""

import asyncio

from server import Check, Line
from workflows.events import (
    Event,
    HumanResponseEvent,
    InputRequiredEvent,
    InternalDispatchEvent,
    StepState,
    StepStateChanged,
    UnhandledEvent,
)


class Progress(Event):
    pct: int


class Ask(InputRequiredEvent):
    prompt: str


class Answer(HumanResponseEvent):
    text: str


def numbers(events):
    return [e.value["i"] for e in events if e.type == "ProgressEvent"]


class Streams(Check):
    async def streamed(self, n=5):
        handler = await self.client.run_workflow_nowait("stream", start_event={"n": n})
        return handler.handler_id

    async def all_of(self, handler_id, **options):
        stream = self.client.get_workflow_events(handler_id, **options)
        events, ids = [], []
        async for event in stream:
            events.append(event)
            ids.append(stream.last_sequence)
        return events, ids

    async def test_whole_stream(self):
        handler = await self.streamed()
        events, ids = await self.all_of(handler)
        self.assertEqual(numbers(events), [0, 1, 2, 3, 4])
        self.assertEqual([e.type for e in events[5:]], ["StopEvent"])
        self.assertEqual(ids, sorted(set(ids)))
        self.assertEqual(events[0].qualified_name, "stream.ProgressEvent")
        self.assertIsNone(events[0].types)
        self.assertEqual(events[5].qualified_name, "workflows.events.StopEvent")
        # Read again, it is the same.
        self.assertEqual(await self.all_of(handler), (events, ids))

    async def test_events_load_as_classes(self):
        handler = await self.client.run_workflow_nowait("hello", start_event={"name": "x"})
        events, _ = await self.all_of(handler.handler_id)
        loaded = [e.load_event(registry=[Progress]) for e in events if e.type == "Progress"]
        self.assertEqual([type(e) for e in loaded], [Progress, Progress])
        self.assertEqual([e.pct for e in loaded], [50, 100])

    async def test_connection_goes_on_after_a_204(self):
        handler = await self.streamed(0)
        await self.all_of(handler)
        for _ in range(3):
            self.assertEqual(await self.all_of(handler, after_sequence="now"), ([], []))
            self.assertEqual((await self.client.get_handler(handler)).status, "completed")

    async def test_after_sequence(self):
        handler = await self.streamed()
        events, ids = await self.all_of(handler)
        for i, last in enumerate(ids):
            rest, rest_ids = await self.all_of(handler, after_sequence=last)
            self.assertEqual((rest, rest_ids), (events[i + 1 :], ids[i + 1 :]))
        self.assertEqual(await self.all_of(handler, after_sequence="now"), ([], []))

    async def test_now_gives_only_what_comes(self):
        handler = await self.ask("human")
        line = Line(after=0, cuts=0)
        async with line:
            stream = line.client.get_workflow_events(handler, after_sequence="now")
            await line.streaming.wait()
            await self.client.send_event(handler, {"type": "HumanResponseEvent", "value": {"response": 1}})
            self.assertEqual([e.type async for e in stream], ["StopEvent"])

    async def test_internal_events(self):
        handler = await self.streamed(1)
        events, ids = await self.all_of(handler, include_internal_events=True)
        _, shown = await self.all_of(handler)
        self.assertEqual(ids, list(range(ids[0], ids[0] + len(ids))))  # all events are numbered
        self.assertLess(set(shown), set(ids))
        self.assertNotIn("StepStateChanged", [e.type for e in (await self.all_of(handler))[0]])
        changes = [e.load_event() for e in events if e.type == "StepStateChanged"]
        for change in changes:
            self.assertIsInstance(change, StepStateChanged)
            self.assertEqual(change.name, "work")
        self.assertEqual([c.step_state for c in changes][-2:], [StepState.RUNNING, StepState.NOT_RUNNING])
        self.assertTrue(all(e.types == ["InternalDispatchEvent"] for e in events if e.type == "StepStateChanged"))

    async def test_every_internal_event_loads(self):
        handler = await self.ask("human")
        stream = self.client.get_workflow_events(handler, include_internal_events=True)
        await self.until(stream, "WorkflowIdleEvent")
        await self.client.send_event(handler, HumanResponseEvent(response="x"))
        events, _ = await self.all_of(handler, include_internal_events=True)
        loaded = [e.load_event() for e in events]
        self.assertEqual([type(e).__name__ for e in loaded], [e.type for e in events])
        for event, known in zip(events, loaded):
            self.assertEqual(event.types == ["InternalDispatchEvent"], isinstance(known, InternalDispatchEvent), event)

    async def test_free_fields_are_plain(self):
        handler = await self.ask("human")
        asked = (await self.until(self.client.get_workflow_events(handler), "InputRequiredEvent"))[-1]
        self.assertEqual(asked.value, {"prefix": "Enter a number: "})
        question = asked.load_event()
        self.assertEqual((type(question), question.prefix), (InputRequiredEvent, "Enter a number: "))
        await self.client.cancel_handler(handler)

    async def test_null_result(self):
        handler = await self.ask("human")
        await self.client.send_event(handler, HumanResponseEvent(response=None))
        done = await self.ended(handler)
        self.assertEqual(done.result.value, {"result": None})
        self.assertIsNone(done.result.load_event().result)

    async def test_two_readers(self):
        handler = await self.ask("human")
        readers = [asyncio.create_task(self.all_of(handler)) for _ in range(2)]
        await self.client.send_event(handler, HumanResponseEvent(response="x"))
        (one, one_ids), (two, two_ids) = await asyncio.gather(*readers)
        self.assertEqual([e.type for e in one], ["InputRequiredEvent", "StopEvent"])
        self.assertEqual((one, one_ids), (two, two_ids))

    async def test_unknown_handler(self):
        with self.assertRaisesRegex(ValueError, "Handler not found"):
            await self.all_of("nope")

    async def test_resumes_after_cuts(self):
        handler = await self.streamed(20)
        want, want_ids = await self.all_of(handler)
        async with Line(after=4, cuts=4) as line:
            stream, events, ids = line.client.get_workflow_events(handler), [], []
            async for event in stream:
                events.append(event)
                ids.append(stream.last_sequence)
        self.assertEqual((events, ids), (want, want_ids))
        self.assertEqual(len(line.requests), 5)
        for i, request in enumerate(line.requests):
            after = want_ids[4 * i - 1] if i else -1
            self.assertIn(f"after_sequence={after} ", request + " ")

    async def test_stream_taken_up_by_another_reader(self):
        """last_sequence is enough to go on, for any reader at any time."""
        handler = await self.ask("human")
        first = self.client.get_workflow_events(handler)
        await self.until(first, "InputRequiredEvent")
        await first.aclose()
        await self.client.send_event(handler, HumanResponseEvent(response="x"))
        events, _ = await self.all_of(handler, after_sequence=first.last_sequence)
        self.assertEqual([e.type for e in events], ["StopEvent"])

    async def test_runs_of_a_reused_handler(self):
        """Each run's stream begins at -1; sequence numbers go on over the runs."""
        given, last = self.new_id(), -1
        for n in (1, 2, 3):
            await self.client.run_workflow("stream", handler_id=given, start_event={"n": n})
            events, ids = await self.all_of(given)
            self.assertEqual(numbers(events), list(range(n)))
            self.assertGreater(ids[0], last)
            after_last, _ = await self.all_of(given, after_sequence=last)
            self.assertEqual(after_last, events)
            last = ids[-1]
        everything, _ = await self.all_of(given, after_sequence=0)
        self.assertEqual(numbers(everything), [0, 0, 1, 0, 1, 2])
        self.assertEqual([e.type for e in everything].count("StopEvent"), 3)

    async def test_large_and_odd_events(self):
        text = "\u2028\u2029\u0085\r\n\x00\x1c\x1e\ufeff" * 20000
        done = await self.client.run_workflow("plain", start_event={"text": text})
        events, _ = await self.all_of(done.handler_id)
        self.assertEqual(events[-1].value["result"], {"echo": {"text": text}})
        self.assertEqual(events[-1], done.result)

    async def test_many_events(self):
        handler = await self.streamed(5000)
        events, ids = await self.all_of(handler)
        self.assertEqual(numbers(events), list(range(5000)))
        self.assertEqual(len(set(ids)), 5001)


class Sending(Check):
    async def test_answers_of_all_forms(self):
        for answer in (
            HumanResponseEvent(response="42"),
            {"type": "HumanResponseEvent", "value": {"response": "42"}},
            {"type": "HumanResponseEvent", "value": {"_data": {"response": "42"}}},
            {"qualified_name": "workflows.events.HumanResponseEvent", "value": {"response": "42"}},
            {"type": "HumanResponseEvent", "data": {"response": "42"}},
        ):
            handler = await self.ask("human")
            self.assertEqual((await self.client.send_event(handler, answer)).status, "sent")
            self.assertEqual((await self.ended(handler)).result.value["result"], "42")

    async def test_event_as_text(self):
        handler = await self.ask("human")
        body = {"event": '{"type": "HumanResponseEvent", "value": {"response": "42"}}'}
        sent = await self.http.post(f"/events/{handler}", json=body)  # as older clients do; send_event cannot
        self.assertEqual(sent.json()["status"], "sent")
        self.assertEqual((await self.ended(handler)).result.value["result"], "42")

    async def test_own_event_classes(self):
        handler = (await self.client.run_workflow_nowait("waiter")).handler_id
        asked = (await self.until(self.client.get_workflow_events(handler), "Ask"))[-1]
        self.assertEqual(asked.types, ["InputRequiredEvent"])
        question = asked.load_event(registry=[Ask])
        self.assertEqual(question.prompt, "your name?")
        await self.client.send_event(handler, Answer(text="Ada"))
        self.assertEqual((await self.ended(handler)).result.value["result"], "hi Ada")

    async def test_to_a_step(self):
        handler = await self.ask("human")
        await self.refused(400, "nope", self.client.send_event(handler, HumanResponseEvent(response=1), step="nope"))
        await self.client.send_event(handler, HumanResponseEvent(response=1), step="answer")
        self.assertEqual((await self.ended(handler)).result.value["result"], 1)

    async def test_bad_events(self):
        handler = await self.ask("human")
        for event, text in (
            (HumanResponseEvent(), "response"),
            ({"type": "Nope", "value": {}}, "Nope"),
            ({"type": "StopEvent", "value": {}}, "StopEvent"),
            ({}, "Event data is required"),
        ):
            await self.refused(400, text, self.client.send_event(handler, event))
        await self.client.cancel_handler(handler)

    async def test_to_an_ended_or_unknown_run(self):
        done = await self.client.run_workflow("counter")
        await self.refused(409, "already completed", self.client.send_event(done.handler_id, HumanResponseEvent(response=1)))
        await self.refused(404, "Handler not found", self.client.send_event("nope", HumanResponseEvent(response=1)))

    async def test_event_that_nobody_takes(self):
        """It is accepted, and the stream says that nothing came of it."""
        handler = (await self.client.run_workflow_nowait("slow")).handler_id
        await self.until(self.client.get_workflow_events(handler), "Progress")
        await self.client.send_event(handler, Progress(pct=7))
        stream = self.client.get_workflow_events(handler, include_internal_events=True)
        unhandled = (await self.until(stream, "UnhandledEvent"))[-1].load_event()
        self.assertIsInstance(unhandled, UnhandledEvent)
        self.assertEqual((unhandled.event_type, unhandled.qualified_name), ("Progress", "slow.Progress"))
        await self.client.cancel_handler(handler)

    async def test_two_people_one_after_the_other(self):
        handler = await self.ask("approval", item="a desk")
        record = await self.client.get_handler(handler)
        self.assertEqual(record.status, "running")
        # The second answer first: it is kept until it is asked for.
        await self.client.send_event(handler, HumanResponseEvent(role="finance", approved=True))
        await self.client.send_event(handler, HumanResponseEvent(role="manager", approved=True))
        done = await self.ended(handler)
        self.assertEqual(done.result.value["result"], {"approved": True, "by": ["manager", "finance"], "calls": 1})

    async def test_one_answer_resolves_one_waiter(self):
        """What the next question needs is not taken by an answer to the last."""
        handler = await self.ask("approval", item="a desk")
        for _ in range(2):
            await self.client.send_event(handler, HumanResponseEvent(role="manager", approved=True))
        stream = self.client.get_workflow_events(handler)
        asked = [e.value["prefix"] for e in (await self.until_asked(stream, "finance"))]
        self.assertEqual(asked, ["manager, approve a desk?", "finance, approve a desk?"])
        await self.client.send_event(handler, HumanResponseEvent(role="finance", approved=False))
        done = await self.ended(handler)
        self.assertEqual(done.result.value["result"]["approved"], False)

    async def until_asked(self, stream, who):
        seen = []
        async for event in stream:
            seen.append(event)
            if event.value.get("prefix", "").startswith(who):
                return seen
        self.fail(f"{who} is not asked")

    async def test_several_at_once(self):
        handlers = await asyncio.gather(*(self.ask("human") for _ in range(10)))
        await asyncio.gather(*(self.client.send_event(h, HumanResponseEvent(response=i)) for i, h in enumerate(handlers)))
        done = await asyncio.gather(*(self.ended(h) for h in handlers))
        self.assertEqual([d.result.value["result"] for d in done], list(range(10)))
