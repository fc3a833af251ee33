"""What the server says of itself and its workflows."""

import server
from llama_agents.client import WorkflowClient
from server import Check
from workflows.representation import WorkflowGraph


class Server(Check):
    async def test_a_new_connection_for_each_request(self):
        """As a client has that knows nothing but the server's address."""
        client = WorkflowClient(base_url=server.URL)
        self.assertEqual((await client.is_healthy()).status, "healthy")
        started = await client.run_workflow_nowait("counter")
        events = [e async for e in client.get_workflow_events(started.handler_id)]
        self.assertEqual(events[-1], (await client.get_handler(started.handler_id)).result)

    async def test_healthy(self):
        self.assertEqual((await self.client.is_healthy()).status, "healthy")

    async def test_workflows(self):
        names = (await self.client.list_workflows()).workflows
        self.assertEqual(names, sorted(names))
        for name in ("counter", "human", "hello", "wordcount"):
            self.assertIn(name, names)

    async def test_schemas_of_start_and_stop(self):
        schema = await self.client.get_workflow_schema("hello")
        self.assertEqual(schema.start["title"], "Hello")
        self.assertEqual(schema.start["required"], ["name"])
        times = schema.start["properties"]["times"]
        self.assertEqual((times["type"], times["default"], times["minimum"], times["description"]), ("integer", 1, 0, "how often"))
        self.assertEqual(schema.stop["title"], "Greeting")
        self.assertEqual(set(schema.stop["properties"]), {"text", "count"})
        plain = await self.client.get_workflow_schema("plain")
        self.assertEqual((plain.start["title"], plain.stop["title"]), ("StartEvent", "StopEvent"))

    async def test_schemas_of_events(self):
        events = (await self.client.get_workflow_events_schema("hello")).events
        titles = {e["title"] for e in events}
        self.assertLessEqual({"Hello", "Mid", "Greeting", "Progress"}, titles)
        progress = next(e for e in events if e["title"] == "Progress")
        self.assertEqual(progress["properties"]["pct"]["type"], "integer")

    async def test_graph(self):
        graph = (await self.client.get_workflow_graph("hello")).graph
        self.assertIsInstance(graph, WorkflowGraph)
        kinds = {n.id: n.node_type for n in graph.nodes}
        self.assertEqual(kinds["first"], "step")
        self.assertEqual(kinds["Mid"], "event")
        edges = {(e.source, e.target) for e in graph.edges}
        self.assertLessEqual({("Hello", "first"), ("first", "Mid"), ("Mid", "second"), ("second", "Greeting")}, edges)
        for source, target in edges:
            self.assertIn(source, kinds)
            self.assertIn(target, kinds)
        # What clients draw: steps alone, joined through the events between them.
        steps = graph.filter_by_node_type("event", "external")
        self.assertEqual({(e.source, e.target) for e in steps.edges}, {("first", "second")})

    async def test_graph_with_people(self):
        graph = (await self.client.get_workflow_graph("human")).graph
        people = [n for n in graph.nodes if n.node_type == "external"]
        self.assertEqual(len(people), 1)
        edges = {(e.source, e.target) for e in graph.edges}
        self.assertIn(("InputRequiredEvent", people[0].id), edges)
        self.assertIn((people[0].id, "HumanResponseEvent"), edges)
        answer = next(n for n in graph.nodes if n.id == "HumanResponseEvent")
        self.assertTrue(answer.is_subclass_of("HumanResponseEvent"))

    async def test_every_workflow_can_be_described(self):
        for name in (await self.client.list_workflows()).workflows:
            await self.client.get_workflow_schema(name)
            await self.client.get_workflow_events_schema(name)
            await self.client.get_workflow_graph(name)

    async def test_unknown_workflow(self):
        for call in (
            self.client.get_workflow_schema,
            self.client.get_workflow_events_schema,
            self.client.get_workflow_graph,
            self.client.run_workflow,
            self.client.run_workflow_nowait,
        ):
            answer = await self.refused(404, "not found", call("nope"))
            self.assertEqual(answer["code"], "not_found")
