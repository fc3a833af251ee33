"""Plays the cases of this folder in the agno package.

Reads lists of cases from the files that are named, and writes, for each case, a
line of JSON: the file, the name of the case, and what its runs came to. The
functions are the twins of those in testdata/plugins/flowkit.
"""

import contextlib
import copy
import json
import logging
import os
import sys

from agno.db.in_memory import InMemoryDb
from agno.run import RunContext
from agno.workflow import Condition, Loop, Parallel, Router, Step, Steps, StepInput, StepOutput, Workflow

logging.disable(logging.CRITICAL)


def text(v):
    if isinstance(v, bool):
        return "true" if v else "false"
    return str(v)


def said(i):
    if i.previous_step_content is not None:
        return text(i.previous_step_content)
    return "" if i.input is None else text(i.input)


def adds(t):
    return lambda i, s: StepOutput(content=said(i) + t)


def names(i, s):
    outputs = i.previous_step_outputs or {}
    return StepOutput(content=",".join(f"{n}={text(outputs[n].content)}" for n in sorted(outputs)))


def pick(i, s):
    items = str(i.input).split(",")
    return StepOutput(content=items[0] if len(items) == 1 else items)


def count(i, s):
    s["count"] = s.get("count", 0) + 1
    return StepOutput(content=s["count"])


def remember(i, s):
    s.setdefault("items", []).append(said(i))
    return StepOutput(content=said(i))


def set_(i, s):
    def merge(to, have):
        for key, v in have.items():
            if isinstance(v, dict) and isinstance(to.get(key), dict):
                merge(to[key], v)
            else:
                to[key] = copy.deepcopy(v)

    merge(s, i.input)
    return StepOutput(content="set")


def forget(i, s):
    s.pop("items", None)
    return StepOutput(content="forgotten")


def fail(i, s):
    raise RuntimeError("asked to fail")


def unsteady(i, s):
    s["tries"] = s.get("tries", 0) + 1
    if s["tries"] < 3:
        raise RuntimeError("not yet")
    return StepOutput(content="steady")


FUNCTIONS = {
    "a": adds("a"),
    "b": adds("b"),
    "c": adds("c"),
    "echo": lambda i, s: StepOutput(content=i.input),
    "previous": lambda i, s: StepOutput(content=i.previous_step_content),
    "wrap": lambda i, s: StepOutput(content={"said": said(i), "n": 1}),
    "upper": lambda i, s: StepOutput(content=said(i).upper()),
    "stop": lambda i, s: StepOutput(content="stopped at " + said(i), stop=True),
    "soft": lambda i, s: StepOutput(content="soft", success=False, error="it said so"),
    "fail": fail,
    "yes": lambda i, s: StepOutput(content=True),
    "no": lambda i, s: StepOutput(content=False),
    "says": lambda i, s: StepOutput(content=said(i) == "yes"),
    "data": lambda i, s: StepOutput(content=(i.additional_data or {}).get("key")),
    "names": names,
    "pick": pick,
    "pick_by_state": lambda i, s: StepOutput(content=s["mode"]),
    "count": count,
    "remember": remember,
    "set": set_,
    "forget": forget,
    "recall": lambda i, s: StepOutput(content="+".join(s["items"])),
    "enough": lambda i, s: StepOutput(content=s.get("count", 0) >= 3),
    "unsteady": unsteady,
    "slow": lambda i, s: StepOutput(content="late"),
    "silent": lambda i, s: None,
}


def function(name):
    f = FUNCTIONS[name.removeprefix("kit.")]

    def executor(step_input: StepInput, run_context: RunContext):
        return f(step_input, run_context.session_state)

    return executor


def deciding(v):
    """An evaluator or selector: the content of a function, or an expression."""
    if not (isinstance(v, str) and v.startswith("kit.")):
        return v
    f = function(v)

    def decide(step_input: StepInput, run_context: RunContext):
        return f(step_input, run_context).content

    return decide


def node(n, inner):
    kind = n.get("type", "step")
    below = [node(c, inner) for c in n.get("steps", n.get("choices", []))]
    if kind == "step":
        if "workflow" in n:
            return Step(name=n["name"], workflow=Workflow(name="inner", steps=[node(c, None) for c in inner]))
        return Step(name=n["name"], executor=function(n["function"]))
    if kind == "steps":
        return Steps(name=n["name"], steps=below)
    if kind == "parallel":
        return Parallel(*below, name=n["name"])
    if kind == "condition":
        otherwise = [node(c, inner) for c in n.get("else_steps", [])]
        return Condition(name=n["name"], evaluator=deciding(n["evaluator"]), steps=below, else_steps=otherwise or None)
    if kind == "router":
        return Router(name=n["name"], selector=deciding(n["selector"]), choices=below)
    end = n.get("end_condition")
    if isinstance(end, str) and end.startswith("kit."):
        f = FUNCTIONS[end.removeprefix("kit.")]
        end = lambda outputs: f(outputs, {}).content  # noqa: E731: it sees the outputs alone
    return Loop(
        name=n["name"],
        steps=below,
        max_iterations=n.get("max_iterations", 3),
        end_condition=end,
        forward_iteration_output=n.get("forward_output", False),
    )


def play(case):
    db = InMemoryDb()
    out = []
    for run in case["runs"]:
        start = run["start"]
        flow = Workflow(
            name="flow",
            db=db,
            session_state=copy.deepcopy(case["flow"].get("session_state")),
            steps=[node(n, case.get("inner")) for n in case["flow"]["steps"]],
            overwrite_db_session_state=start.get("overwrite", False),
            telemetry=False,
        )
        did = {}
        try:
            r = flow.run(
                input=start.get("input"),
                additional_data=start.get("additional_data"),
                session_id="s",
                session_state=copy.deepcopy(start.get("session_state")),
            )
            did["result"] = r.content
            did["stopped"] = bool(r.step_results and r.step_results[-1].stop)
            did["status"] = str(r.status.value)
        except Exception as e:
            did["error"] = str(e)
        try:
            did["state"] = flow.get_session_state(session_id="s")
        except Exception:
            did["state"] = {}
        out.append(did)
    return out


def main():
    with open(os.devnull, "w") as nowhere:
        for file in sys.argv[1:]:
            with open(file) as f:
                cases = json.load(f)
            for case in cases:
                with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
                    runs = play(case)
                print(json.dumps({"file": os.path.basename(file), "name": case["name"], "runs": runs}, default=str), flush=True)


main()
