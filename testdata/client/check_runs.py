"""Starting runs, waiting for them, and how they end."""

import asyncio

from pydantic import Field
from server import Check
from workflows import Context, Workflow, step
from workflows.events import StartEvent, StopEvent, WorkflowFailedEvent, WorkflowTimedOutEvent


class Hello(StartEvent):
    name: str
    times: int = Field(default=1, ge=0)


class Greeting(StopEvent):
    text: str
    count: int = 0


class Runs(Check):
    async def both(self, workflow, start_event, want):
        """The result by run_workflow, and by run_workflow_nowait and a wait."""
        done = await self.client.run_workflow(workflow, start_event=start_event)
        self.assertEqual(done.status, "completed")
        self.assertEqual(done.result.value["result"], want)
        started = await self.client.run_workflow_nowait(workflow, start_event=start_event)
        done = await self.ended(started.handler_id)
        self.assertEqual((done.status, done.run_id), ("completed", started.run_id))
        self.assertEqual(done.result.value["result"], want)

    async def test_start_event_as_dict(self):
        await self.both("loop", {"n": 3}, {"iterations": 3})

    async def test_start_event_as_envelope(self):
        await self.both("loop", {"type": "StartEvent", "value": {"n": 3}}, {"iterations": 3})
        await self.both("loop", {"qualified_name": "workflows.events.StartEvent", "value": {"n": 3}}, {"iterations": 3})

    async def test_start_event_as_object(self):
        await self.both("loop", StartEvent(n=3), {"iterations": 3})
        await self.both("wordcount", StartEvent(text="a b a", top=1), {"lines": 1, "words": 3, "distinct": 2, "top": [["a", 2]]})

    async def test_without_start_event(self):
        await self.both("counter", None, 1)

    async def test_free_fields_of_all_kinds(self):
        fields = {"text": "a\u2028b\u2029c\u0085d\n\"é😀", "no": None, "yes": True, "int": -(2**62), "float": 1.5, "list": [1, [2]], "map": {"a": {}}}
        await self.both("plain", fields, {"echo": fields})
        await self.both("plain", StartEvent(**fields), {"echo": fields})

    async def test_own_event_classes(self):
        started = await self.client.run_workflow_nowait("hello", start_event=Hello(name="Ada", times=2))
        done = await self.ended(started.handler_id)
        for done in (done, await self.client.run_workflow("hello", start_event=Hello(name="Ada", times=2))):
            self.assertEqual((done.result.type, done.result.types), ("Greeting", ["StopEvent"]))
            greeting = done.result.load_event(registry=[Greeting])
            self.assertIsInstance(greeting, Greeting)
            self.assertEqual((greeting.text, greeting.count), ("hello hello Ada", 1))

    async def test_base_events_load_without_a_registry(self):
        done = await self.client.run_workflow("counter")
        stop = done.result.load_event()
        self.assertIs(type(stop), StopEvent)
        self.assertEqual(stop.result, 1)

    async def test_record(self):
        started = await self.client.run_workflow_nowait("counter")
        self.assertEqual(started.workflow_name, "counter")
        self.assertIn(started.status, ("running", "completed"))
        done = await self.ended(started.handler_id)
        self.assertEqual((done.handler_id, done.run_id), (started.handler_id, started.run_id))
        self.assertIsNone(done.error)
        self.assertFalse(done.result_unreadable)
        self.assertTrue(done.started_at <= done.completed_at <= done.updated_at)
        self.assertEqual(await self.client.get_result(started.handler_id), done)

    async def test_wait_for_handler(self):
        started = await self.client.run_workflow_nowait("counter")
        done = await self.client.wait_for_handler(started.handler_id, timeout=30, poll_interval=0.01)
        self.assertEqual(done.status, "completed")
        waiting = await self.ask("human")
        with self.assertRaises(TimeoutError):
            await self.client.wait_for_handler(waiting, timeout=0.01, poll_interval=0.01)
        await self.client.cancel_handler(waiting)

    async def test_given_handler_id(self):
        given = self.new_id()
        done = await self.client.run_workflow("counter", handler_id=given)
        self.assertEqual(done.handler_id, given)

    async def test_reused_handler_goes_on_with_its_state(self):
        given, runs = self.new_id(), []
        for want in (1, 2, 3):
            done = await self.client.run_workflow("counter", handler_id=given)
            self.assertEqual((done.handler_id, done.result.value["result"]), (given, want))
            runs.append(done.run_id)
        started = await self.client.run_workflow_nowait("counter", handler_id=given)
        self.assertEqual((await self.ended(given)).result.value["result"], 4)
        self.assertEqual(len({*runs, started.run_id}), 4)

    async def test_id_of_an_active_handler(self):
        waiting = await self.ask("human")
        for call in (self.client.run_workflow, self.client.run_workflow_nowait):
            answer = await self.refused(409, "", call("human", handler_id=waiting))
            self.assertEqual(answer["code"], "conflict")
        await self.client.cancel_handler(waiting)

    async def test_bad_start_events(self):
        for fields, text in (
            ({}, "n"),
            ({"n": "3"}, "n"),
            ({"n": -1}, "n"),
            ({"type": "Nope", "value": {}}, "Nope"),
        ):
            for call in (self.client.run_workflow, self.client.run_workflow_nowait):
                await self.refused(400, text, call("loop", start_event=fields))

    async def test_context_of_python(self):
        """A context is a snapshot of the server's own kind: another is refused."""

        class Flow(Workflow):
            @step
            async def only(self, ev: StartEvent) -> StopEvent:
                return StopEvent()

        context = Context(Flow())
        for given in (context, context.to_dict()):
            await self.refused(400, "context", self.client.run_workflow("counter", context=given))

    async def test_failed_run(self):
        answer = await self.refused(500, "boom: it failed", self.client.run_workflow("fail"))
        self.assertEqual((answer["status"], answer["error"]), ("failed", "boom: it failed"))
        started = await self.client.run_workflow_nowait("fail")
        events = [e async for e in self.client.get_workflow_events(started.handler_id)]
        failed = events[-1].load_event(registry=[WorkflowFailedEvent])
        self.assertEqual((failed.step_name, failed.attempts, str(failed.exception)), ("boom", 1, "boom: it failed"))
        self.assertGreaterEqual(failed.elapsed_seconds, 0)
        self.assertEqual(events[-1].types, ["StopEvent"])
        await self.refused(500, "boom: it failed", self.client.get_handler(started.handler_id))
        await self.refused(500, "boom: it failed", self.client.wait_for_handler(started.handler_id))

    async def test_retried_run(self):
        done = await self.client.run_workflow("flaky", start_event={"fail_times": 2, "max_attempts": 5})
        self.assertEqual(done.result.value["result"], {"attempts": 3})
        answer = await self.refused(500, "flaky", self.client.run_workflow("flaky", start_event={"fail_times": 9}))
        started = await self.client.run_workflow_nowait("flaky", start_event={"fail_times": 9})
        events = [e async for e in self.client.get_workflow_events(started.handler_id)]
        failed = events[-1].load_event()  # by its qualified name
        self.assertIsInstance(failed, WorkflowFailedEvent)
        self.assertEqual((failed.step_name, failed.attempts, str(failed.exception)), ("attempt", 3, answer["error"]))

    async def test_timed_out_run(self):
        started = await self.client.run_workflow_nowait("timeout")
        answer = await self.refused(500, "Workflow timed out after 1.0s", self.client.run_workflow("timeout"))
        self.assertEqual(answer["status"], "failed")
        events = [e async for e in self.client.get_workflow_events(started.handler_id)]
        over = events[-1].load_event()
        self.assertIsInstance(over, WorkflowTimedOutEvent)
        self.assertEqual((over.timeout, over.active_steps), (1.0, ["wait"]))
        await self.refused(500, "Workflow timed out after 1.0s", self.client.get_handler(started.handler_id))

    async def test_concurrent_runs(self):
        runs = [self.client.run_workflow("concurrent", start_event={"query": f"q{i}"}) for i in range(20)]
        runs += [self.client.run_workflow("counter") for _ in range(20)]
        done = await asyncio.gather(*runs)
        self.assertEqual(len({d.handler_id for d in done}), 40)
        for i, d in enumerate(done[:20]):
            self.assertEqual(d.result.value["result"], [f"C:q{i}", f"A:q{i}", f"B:q{i}"])
        self.assertEqual([d.result.value["result"] for d in done[20:]], [1] * 20)

    async def test_concurrent_starts_under_one_id(self):
        """Of two starts of one handler one is refused."""
        given = self.new_id()
        answers = await asyncio.gather(
            *(self.client.run_workflow_nowait("human", handler_id=given) for _ in range(2)), return_exceptions=True
        )
        statuses = sorted(getattr(getattr(a, "response", None), "status_code", 200) for a in answers)
        self.assertEqual(statuses, [200, 409])
        await self.client.cancel_handler(given)


class Handlers(Check):
    async def test_filters(self):
        waiting, done, failed = await self.ask("human"), self.new_id(), self.new_id()
        await self.client.run_workflow("counter", handler_id=done)
        await self.refused(500, "boom", self.client.run_workflow("fail", handler_id=failed))

        async def ids(**filters):
            found = {h.handler_id: h for h in (await self.client.get_handlers(**filters)).handlers}
            return {i for i in (waiting, done, failed) if i in found}

        self.assertEqual(await ids(), {waiting, done, failed})
        self.assertEqual(await ids(status=["running"]), {waiting})
        self.assertEqual(await ids(status=["running", "completed"]), {waiting, done})
        self.assertEqual(await ids(status=["failed"]), {failed})
        self.assertEqual(await ids(workflow_name=["counter"]), {done})
        self.assertEqual(await ids(workflow_name=["counter", "human"]), {waiting, done})
        self.assertEqual(await ids(status=["completed"], workflow_name=["counter", "human"]), {done})
        self.assertEqual(await ids(status=[], workflow_name=[]), {waiting, done, failed})
        self.assertEqual(await ids(workflow_name=["nope"]), set())
        await self.client.cancel_handler(waiting)
        self.assertEqual(await ids(status=["cancelled"]), {waiting})

    async def test_listed_records_are_the_handlers_own(self):
        done = await self.client.run_workflow("hello", handler_id=self.new_id(), start_event={"name": "x"})
        listed = (await self.client.get_handlers(workflow_name=["hello"])).handlers
        self.assertIn(done, listed)

    async def test_finished_handler_stays_with_its_workflow(self):
        given = self.new_id()
        await self.client.run_workflow("counter", handler_id=given)
        await self.refused(409, "belongs to workflow 'counter'", self.client.run_workflow("plain", handler_id=given))
        again = await self.client.run_workflow("counter", handler_id=given)
        self.assertEqual(again.result.value["result"], 2)

    async def test_unknown_handler(self):
        for call in (self.client.get_handler, self.client.get_result, self.client.cancel_handler):
            await self.refused(404, "Handler not found", call("nope"))

    async def test_cancel(self):
        waiting = await self.ask("human")
        following = self.client.get_workflow_events(waiting)
        self.assertEqual((await self.client.cancel_handler(waiting)).status, "cancelled")
        events = [e async for e in following]
        self.assertEqual(events[-1].type, "WorkflowCancelledEvent")
        self.assertIsInstance(events[-1].load_event(), StopEvent)
        answer = await self.refused(500, "cancelled", self.client.get_handler(waiting))
        self.assertEqual(answer["status"], "cancelled")
        await self.refused(404, "Handler not found", self.client.cancel_handler(waiting))

    async def test_cancel_ends_a_run_that_is_waited_for(self):
        given = self.new_id()
        waiting = asyncio.create_task(self.client.run_workflow("human", handler_id=given))
        while True:
            try:
                await self.until(self.client.get_workflow_events(given), "InputRequiredEvent")
                break
            except ValueError:  # it has not started yet
                continue
        await self.client.cancel_handler(given)
        answer = await self.refused(500, "", waiting)
        self.assertEqual((answer["handler_id"], answer["status"]), (given, "cancelled"))

    async def test_cancel_of_what_computes(self):
        started = await self.client.run_workflow_nowait("spin")
        self.assertEqual((await self.client.cancel_handler(started.handler_id)).status, "cancelled")
        answer = await self.refused(500, "", self.client.get_handler(started.handler_id))
        self.assertEqual(answer["status"], "cancelled")

    async def test_purge(self):
        waiting = await self.ask("human")
        done = (await self.client.run_workflow("counter")).handler_id
        for handler in (waiting, done):
            self.assertEqual((await self.client.cancel_handler(handler, purge=True)).status, "deleted")
            await self.refused(404, "Handler not found", self.client.get_handler(handler))
            with self.assertRaisesRegex(ValueError, "Handler not found"):
                async for _ in self.client.get_workflow_events(handler):
                    pass
        # The id is free again, and begins without the state it had.
        again = await self.client.run_workflow("counter", handler_id=done)
        self.assertEqual(again.result.value["result"], 1)
