//! Steps that wait: for events, for a time, for children.

use std::time::Duration;

use weft::code;
use weft::prelude::*;
use weft::testing::Session;

fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::map(entries)
}

/// One step asks two people, one after the other.
mod approval {
    use super::*;

    #[derive(StartEvent)]
    pub struct StartEvent {
        pub item: String,
    }

    #[derive(InputRequiredEvent)]
    struct InputRequiredEvent {
        prefix: String,
    }

    #[derive(HumanResponseEvent)]
    struct HumanResponseEvent {
        approved: bool,
    }

    #[derive(State, Default)]
    struct State {
        calls: u64,
    }

    #[step(waits = [HumanResponseEvent], streams = [InputRequiredEvent])]
    fn approve(ctx: &Context<State>, ev: StartEvent) -> Result<Stop> {
        let calls = ctx.edit(|s| {
            s.calls += 1;
            s.calls
        })?;
        weft::println!("asking about {}", ev.item);
        let mut approved = true;
        for role in ["manager", "finance"] {
            let prefix = format!("{role}, approve {}?", ev.item);
            let answer = ctx
                .wait_for::<HumanResponseEvent>()
                .named(role)
                .ask(&InputRequiredEvent { prefix })
                .matching("role", role)
                .event()?;
            approved &= answer.approved;
        }
        Ok(Stop::new((approved, calls)))
    }

    workflow!("approval", state = State, steps = [approve], timeout = none);
}

fn answer(role: &str, approved: bool) -> Value {
    map([("role", role.into()), ("approved", approved.into())])
}

/// What the step did before it waited is not done again.
#[test]
fn two_answers() {
    let session = Session::new(&approval::WORKFLOW);
    let item = "a desk".into();
    let run = session.run(&approval::StartEvent { item }).unwrap();
    assert_eq!(run.waiting(), ["manager"]);
    let kind = "HumanResponseEvent";
    run.post(kind, &answer("janitor", false)).unwrap(); // kept, as nobody waits for it
    run.post(kind, &answer("finance", true)).unwrap(); // kept for later
    assert_eq!(run.waiting(), ["manager"]);
    run.post(kind, &answer("manager", true)).unwrap();
    assert_eq!(run.result::<(bool, u64)>().unwrap(), (true, 1));
    assert!(run.waiting().is_empty());
    let asked: Vec<_> = run.streamed().into_iter().map(|e| e.body).collect();
    let question = |role: &str| map([("prefix", format!("{role}, approve a desk?").into())]);
    assert_eq!(asked, [question("manager"), question("finance")]);
    assert_eq!(run.log().len(), 1);
    assert_eq!(session.read::<u64>("calls").unwrap(), 1);
}

mod clock {
    use super::*;

    #[derive(StartEvent)]
    pub struct StartEvent {
        pub seconds: f64,
    }

    #[derive(Event)]
    struct Tick {
        n: u64,
    }

    #[derive(HumanResponseEvent)]
    struct Other;

    #[step(waits = [Tick])]
    fn sleep(ctx: &Context, ev: StartEvent) -> Result<Stop> {
        let before = ctx.unix_seconds();
        ctx.sleep(Duration::from_secs_f64(ev.seconds))?;
        let slept = ctx.unix_seconds() - before;
        let numbers = (0..2).map(|_| Ok(ctx.wait_for::<Tick>().event()?.n));
        let numbers: Result<Vec<u64>> = numbers.collect();
        Ok(Stop::new((slept, numbers?)))
    }

    /// Each call is refused, with what to write instead.
    #[step]
    fn mistakes(ctx: &Context, _: Other) -> Result<Stop> {
        let day = Duration::from_secs(86_400);
        for (error, want) in [
            (
                ctx.wait_for::<Tick>().event().err(),
                "wait: Tick is not declared: add it to the step, #[step(waits = [Tick])]",
            ),
            (
                ctx.wait_for::<Tick>().ask(&Other).event().err(),
                "wait: Other is not declared: add it to the step, #[step(streams = [Other])]",
            ),
            (
                ctx.wait_for::<Tick>().named("").event().err(),
                "wait: a name has 1 to 128 bytes",
            ),
            (
                ctx.wait_for::<Tick>()
                    .timeout(day)
                    .timeout(Duration::ZERO)
                    .event()
                    .err(),
                "wait: a timeout must be above 0: leave it out for none",
            ),
        ] {
            let error = error.unwrap();
            assert_eq!(
                (error.code(), error.message()),
                (code::INVALID_MESSAGE, want)
            );
        }
        Ok(Stop::new("all refused"))
    }

    workflow!("clock", timeout = none, steps = [sleep, mistakes]);
}

#[test]
fn a_sleep_and_two_waits() {
    let start = clock::StartEvent { seconds: 90.5 };
    let run = Session::new(&clock::WORKFLOW).run(&start).unwrap();
    for n in [7, 9] {
        assert_eq!(run.waiting(), [format!("Tick #{}", (n - 5) / 2)]);
        run.post("Tick", &map([("n", n.into())])).unwrap();
    }
    let (slept, numbers): (f64, Vec<u64>) = run.result().unwrap();
    assert!((slept - 90.5).abs() < 1e-6, "slept {slept} s");
    assert_eq!(numbers, [7, 9]);
}

#[test]
fn waits_that_are_refused() {
    let start = clock::StartEvent { seconds: 0.0 };
    let run = Session::new(&clock::WORKFLOW).run(&start).unwrap();
    run.post("Other", &()).unwrap();
    assert_eq!(run.result::<String>().unwrap(), "all refused");
}

/// A workflow that is its own child.
mod family {
    use super::*;

    #[derive(StartEvent, Clone)]
    pub struct Kid {
        #[weft(default)]
        pub mode: String,
        #[weft(default)]
        pub n: u32,
    }

    #[derive(InputRequiredEvent)]
    struct Ask {
        n: u32,
    }

    #[derive(HumanResponseEvent)]
    struct Reply {
        text: String,
    }

    #[derive(Event)]
    struct Shown {
        n: u32,
    }

    #[derive(StopEvent)]
    struct Counted {
        count: i64,
    }

    #[derive(Events)]
    enum Next {
        Stop(Stop),
        Counted(Counted),
        Ask(Ask),
    }

    #[step(streams = [Shown])]
    fn start(ctx: &Context, ev: Kid) -> Result<Next> {
        let stop = match ev.mode.as_str() {
            "" => calls(ctx)?,
            "mistakes" => mistakes(ctx)?,
            "ask a child" => {
                ctx.increment("asked", 1)?;
                let mode = "human".into();
                let child = Kid { mode, n: ev.n };
                let reply: Result<String> = ctx
                    .run_workflow("family", &child)
                    .named("child")
                    .with_stream()
                    .result();
                Stop::new(reply.map_err(|e| Error::new("from a child", e))?)
            }
            "human" => return Ok(Next::Ask(Ask { n: ev.n })),
            "boom" => return Err(Error::new("boom", "asked to fail").with_data(&[ev.n])),
            "count" => {
                let count = ctx.increment("count", ev.n.into())?;
                return Ok(Next::Counted(Counted { count }));
            }
            "show" => {
                ctx.stream(&Shown { n: ev.n })?;
                Stop::new(())
            }
            "deep" if ev.n == 0 => Stop::new(0),
            "deep" => {
                let n = ev.n - 1;
                let depth: u32 = ctx.run_workflow("family", &Kid { n, ..ev }).result()?;
                Stop::new(depth + 1)
            }
            mode => return Err(Error::new("mode", mode)),
        };
        Ok(Next::Stop(stop))
    }

    #[step]
    fn answer(_: &Context, ev: Reply) -> Result<Stop> {
        match ev.text.as_str() {
            "boom" => Err(Error::new("boom", "asked to fail")),
            _ => Ok(Stop::new(ev.text)),
        }
    }

    fn calls(ctx: &Context) -> Result<Stop> {
        let twice: u32 = ctx
            .run_workflow("double", &map([("n", 4.into())]))
            .result()?;
        let kid = |mode: &str, n| Kid {
            mode: mode.into(),
            n,
        };
        let depth: u8 = ctx.run_workflow("family", &kid("deep", 5)).result()?;
        let mut counts = vec![twice.into(), depth.into()];
        let one = kid("count", 1);
        let ten = kid("count", 10);
        let run = |start| ctx.run_workflow("family", start);
        for child in [
            run(&one),
            run(&one),
            run(&one).same_session(),
            run(&one).same_session(),
            run(&one).in_session("x"),
            run(&one).in_session("x"),
            run(&ten).same_session().named("once"),
            run(&ten).same_session().named("once"), // the same one
        ] {
            let counted: Counted = child.result()?;
            counts.push(counted.count);
        }
        for (n, shown) in [(1, false), (2, true)] {
            let child = ctx.run_workflow("family", &kid("show", n));
            let child = if shown { child.with_stream() } else { child };
            child.result::<()>()?;
        }
        Ok(Stop::new(counts))
    }

    fn mistakes(ctx: &Context) -> Result<Stop> {
        let kid = map([("mode", "boom".into()), ("n", 3.into())]);
        for (workflow, code) in [
            ("family", "boom"),
            ("late", "late"),
            ("nobody", code::NOT_FOUND),
        ] {
            let error = ctx.run_workflow(workflow, &kid).result::<()>().unwrap_err();
            assert_eq!(error.code(), code);
            let what = format!("run \"{workflow}\": ");
            assert!(error.message().starts_with(&what), "{error}");
            if code == "boom" {
                assert_eq!(error.data(), Some(Value::list([3])));
            }
        }
        let run = || ctx.run_workflow("family", &());
        let text = "its result cannot be read as alloc::string::String: at byte ";
        let stop = map([("mode", "count".into())]);
        let wrong = ctx.run_workflow("family", &stop).result::<String>();
        assert!(wrong.unwrap_err().message().contains(text));
        for (result, want) in [
            (
                ctx.run_workflow("family", &[1]).result(),
                "what starts a workflow is a struct or a map",
            ),
            (
                run().named("").result(),
                "a child's name has 1 to 128 bytes",
            ),
            (
                run().in_session("").result(),
                "a session's id is not empty: leave in_session out for a new one",
            ),
            (
                run().in_session("x").same_session().result(),
                "a child has one session: give same_session() or in_session(id)",
            ),
        ] {
            let error: Error = Result::<()>::unwrap_err(result);
            assert_eq!(error.code(), code::INVALID_MESSAGE);
            assert_eq!(error.message(), format!("run \"family\": {want}"));
        }
        Ok(Stop::new("all refused"))
    }

    workflow!("family", steps = [start, answer]);
}

fn family() -> Session {
    let double = |start: family::Kid| Ok(2 * start.n);
    let late = |_: Value| -> Result<()> { Err(Error::new("late", "too late")) };
    Session::new(&family::WORKFLOW)
        .child("double", double)
        .child("late", late)
}

#[test]
fn a_child_is_a_call() {
    let session = family();
    let run = session.run(&()).unwrap();
    let counts: Vec<i64> = run.result().unwrap();
    assert_eq!(counts, [8, 5, 1, 1, 1, 2, 1, 2, 12, 12]);
    assert_eq!(session.read::<i64>("count").unwrap(), 12);
    assert_eq!(run.streamed().len(), 1);
    let children = run.children();
    assert_eq!(children.len(), 1 + 7 + 2);
    let alone = children[1].session();
    assert_eq!(alone.state(), map([("count", 1.into())]));
}

#[test]
fn children_that_fail() {
    let start = map([("mode", "mistakes".into())]);
    let run = family().run(&start).unwrap();
    assert_eq!(run.result::<String>().unwrap(), "all refused");
}

#[test]
fn a_child_that_waits() {
    let start = map([("mode", "ask a child".into()), ("n", 3.into())]);
    for (text, want) in [("yes", Ok("yes")), ("boom", Err("from a child"))] {
        let session = family();
        let run = session.run(&start).unwrap();
        assert_eq!(run.waiting(), ["child"]);
        assert_eq!(run.streamed()[0].name, "Ask");
        let child = run.children().remove(0);
        let posted = child.post("Reply", &map([("text", text.into())]));
        match want {
            Ok(want) => assert_eq!(run.result::<String>().unwrap(), want),
            Err(code) => {
                assert_eq!(posted.unwrap_err().code(), "boom");
                assert_eq!(run.error().unwrap().code(), code);
            }
        }
        assert_eq!(session.read::<i64>("asked").unwrap(), 1);
    }
}

#[test]
fn another_workflow_as_a_child() {
    mod parent {
        use super::*;

        #[derive(StartEvent)]
        struct StartEvent;

        #[step]
        fn start(ctx: &Context, _: StartEvent) -> Result<Stop> {
            let start = map([("item", "a chair".into())]);
            let approval = ctx.run_workflow("approval", &start);
            let (approved, calls): (bool, u64) = approval.same_session().result()?;
            Ok(Stop::new((approved, calls)))
        }

        workflow!("parent", steps = [start]);
    }
    let session = Session::new(&parent::WORKFLOW).child_workflow(&approval::WORKFLOW);
    let run = session.run(&()).unwrap();
    assert_eq!(run.waiting(), ["approval"]);
    let child = &run.children()[0];
    for role in ["manager", "finance"] {
        assert_eq!(child.waiting(), [role]);
        child
            .post("HumanResponseEvent", &answer(role, true))
            .unwrap();
    }
    assert_eq!(run.result::<(bool, u64)>().unwrap(), (true, 1));
    assert_eq!(session.read::<u64>("calls").unwrap(), 1);
}
