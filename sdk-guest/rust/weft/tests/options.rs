//! What few steps say of themselves: that they catch, are atomic, take subtypes;
//! and resources.

use std::collections::BTreeMap;
use std::time::Duration;

use weft::code;
use weft::prelude::*;
use weft::testing::Session;

fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::map(entries)
}

mod atomic {
    use super::*;

    #[derive(StartEvent)]
    pub struct StartEvent {
        pub fail: bool,
    }

    #[derive(Event)]
    struct Work {
        fail: bool,
    }

    #[derive(Event)]
    struct Done;

    #[derive(Event)]
    struct Shown;

    #[derive(State, Default)]
    pub struct Tally {
        count: u32,
        log: Vec<String>,
    }

    #[derive(Events)]
    enum End {
        Done(Done),
        Failed(StepFailed),
    }

    #[step]
    fn begin(ctx: &Context<Tally>, ev: StartEvent) -> Result<Work> {
        ctx.set("log", &["begun"])?;
        Ok(Work { fail: ev.fail })
    }

    #[step(atomic, emits = [Done], streams = [Shown])]
    fn work(ctx: &Context<Tally>, ev: Work) -> Result<()> {
        ctx.edit(|s| s.count += 10)?;
        assert_eq!(ctx.append("log", "worked")?, 2);
        let seen = ctx.state()?;
        assert_eq!((seen.count, seen.log.len()), (10, 2));
        ctx.stream(&Shown)?;
        ctx.send(&Done)?;
        assert!(ctx.send_to("nowhere", &Done).is_err());
        refused(ctx);
        ctx.info("worked");
        match ev.fail {
            true => Err(Error::new("boom", "asked to")),
            false => Ok(()),
        }
    }

    /// The calls that an atomic step may not make.
    fn refused(ctx: &Context<Tally>) {
        for error in [
            ctx.run_workflow("atomic", &()).result::<()>().err(),
            ctx.collect_n::<Work>(1).err(),
            ctx.sleep(Duration::from_secs(1)).err(),
            ctx.call::<()>("web", "request", &()).err(),
        ] {
            assert_eq!(error.unwrap().code(), code::FAILED_PRECONDITION);
        }
    }

    #[step(catches = [work])]
    fn end(ctx: &Context<Tally>, ev: End) -> Result<Stop> {
        if let End::Failed(ev) = ev {
            assert_eq!((ev.step_name.as_str(), ev.attempts), ("work", 1));
            let value = map([("fail", true.into())]);
            let input = map([("type", "Work".into()), ("value", value)]);
            assert_eq!(ev.input_event, Some(input));
            assert_eq!(ev.exception.exception_type, "boom");
        }
        Ok(Stop::new(ctx.state()?))
    }

    workflow!("atomic", state = Tally, steps = [begin, work, end]);
}

/// What an atomic step does shows when it succeeds, or not at all.
#[test]
fn an_atomic_step() {
    for (fail, count, log) in [
        (false, 10, vec!["begun", "worked"]),
        (true, 0, vec!["begun"]),
    ] {
        let session = Session::new(&atomic::WORKFLOW);
        let run = session.run(&atomic::StartEvent { fail }).unwrap();
        let want = map([("count", count.into()), ("log", Value::list(log))]);
        assert_eq!(run.result::<Value>().unwrap(), want);
        assert_eq!(session.state(), want);
        assert_eq!(
            (run.streamed().len(), run.log().len()),
            (usize::from(!fail), 1)
        );
    }
}

mod catching {
    use super::*;

    #[derive(StartEvent)]
    pub struct StartEvent {
        pub what: String,
    }

    #[derive(Event)]
    struct Next {
        what: String,
    }

    #[step]
    fn first(_: &Context, ev: StartEvent) -> Result<Next> {
        match ev.what.as_str() {
            "first" => Err(Error::new("first", "the first fails")),
            _ => Ok(Next { what: ev.what }),
        }
    }

    #[step]
    fn second(_: &Context, ev: Next) -> Result<Stop> {
        Err(Error::new("second", ev.what))
    }

    #[step(catches = ["second"], max_recoveries = 3)]
    fn one(_: &Context, ev: StepFailed) -> Result<Stop> {
        Err(Error::new("again", ev.exception.exception_message))
    }

    #[step(catches = all)]
    fn rest(_: &Context, ev: StepFailed) -> Result<Stop> {
        Ok(Stop::new(ev.exception.exception_message))
    }

    workflow!("catching", steps = [first, second, one, rest]);
}

/// A failure goes to the step that names the one that failed, else to the one that
/// catches all, even that of the catching step itself.
#[test]
fn failures_that_are_caught() {
    let run = |what: &str| {
        let what = what.into();
        Session::new(&catching::WORKFLOW).run(&catching::StartEvent { what })
    };
    let result: String = run("first").unwrap().result().unwrap();
    assert_eq!(result, "the first fails");
    let result: String = run("x").unwrap().result().unwrap();
    assert_eq!(result, "x");
}

mod subtypes {
    use super::*;

    #[derive(StartEvent)]
    struct StartEvent;

    #[derive(Event)]
    pub struct Item {
        name: String,
    }

    /// A box is an item.
    #[derive(Event)]
    #[weft(extends = Item)]
    pub struct Crate {
        name: String,
        size: u32,
    }

    #[derive(Event)]
    #[weft(extends = Crate, name = "SteelCrate")]
    pub struct Steel {
        name: String,
        size: u32,
        weight: u32,
    }

    #[derive(Events)]
    enum Any {
        Item(Item),
        Crate(Crate),
        Steel(Steel),
    }

    #[derive(Event)]
    struct Length {
        n: usize,
    }

    #[derive(Event)]
    struct Seen {
        by: String,
    }

    #[derive(InputRequiredEvent)]
    struct Question;

    #[derive(InputRequiredEvent)]
    #[weft(extends = Question)]
    struct HardQuestion;

    #[step(emits = [HardQuestion])]
    fn fan(ctx: &Context, _: StartEvent) -> Result<Vec<Any>> {
        ctx.send(&HardQuestion)?;
        let name = || "thing".to_owned();
        Ok(vec![
            Any::Item(Item { name: name() }),
            Any::Crate(Crate {
                name: name() + "s",
                size: 1,
            }),
            Any::Steel(Steel {
                name: name() + "ss",
                size: 2,
                weight: 3,
            }),
        ])
    }

    #[step(accept_subtypes)]
    fn lengths(_: &Context, ev: Item) -> Result<Length> {
        Ok(Length { n: ev.name.len() })
    }

    #[derive(Events)]
    enum Kind {
        Item(Item),
        Crate(Crate),
    }

    /// Gets a steel crate as the nearest that it knows.
    #[step(accept_subtypes = true, streams = [Seen])]
    fn kinds(ctx: &Context, ev: Kind) -> Result<()> {
        let by = match ev {
            Kind::Item(_) => "item".into(),
            Kind::Crate(c) => format!("crate {}", c.size),
        };
        ctx.stream(&Seen { by })
    }

    #[step(streams = [Seen])]
    fn exact(ctx: &Context, ev: Item) -> Result<()> {
        let by = format!("exact {}", ev.name);
        ctx.stream(&Seen { by })
    }

    #[step]
    fn sum(_: &Context, all: Vec<Length>) -> Result<Stop> {
        Ok(Stop::new(all.iter().map(|l| l.n).sum::<usize>()))
    }

    workflow!("subtypes", steps = [fan, lengths, kinds, exact, sum]);
}

/// An event that extends another is one of that kind too.
#[test]
fn events_that_extend_others() {
    let run = Session::new(&subtypes::WORKFLOW).run(&()).unwrap();
    assert_eq!(run.result::<usize>().unwrap(), 5 + 6 + 7);
    let streamed = run.streamed();
    assert_eq!(streamed[0].name, "HardQuestion");
    let by = |e: &weft::testing::Streamed| e.body.get("by").unwrap().read().unwrap();
    let seen: Vec<String> = streamed[1..].iter().map(by).collect();
    assert_eq!(seen, ["item", "exact thing", "crate 1", "crate 2"]);
    let manifest = subtypes::WORKFLOW.manifest().unwrap();
    let events = manifest.get("events").and_then(Value::as_map).unwrap();
    let said: BTreeMap<_, _> = events
        .iter()
        .map(|(name, e)| {
            let of = |key| e.get(key).and_then(Value::as_str).unwrap_or("");
            (name.as_str(), (of("kind"), of("extends")))
        })
        .collect();
    assert_eq!(said["Item"], ("", ""));
    assert_eq!(said["Crate"], ("", "Item"));
    assert_eq!(said["SteelCrate"], ("", "Crate"));
    // A base is declared, used or not.
    assert_eq!(said["Question"], ("input_required", "InputRequiredEvent"));
    assert_eq!(said["HardQuestion"], ("input_required", "Question"));
}

mod joined {
    use super::*;

    #[derive(StartEvent)]
    struct StartEvent;

    #[derive(Event)]
    pub struct Left {
        n: u32,
    }

    #[derive(Event)]
    #[weft(extends = Left)]
    pub struct FarLeft {
        n: u32,
    }

    #[derive(Event)]
    pub struct Right {
        n: u32,
    }

    #[derive(Event)]
    struct Pair {
        n: u32,
    }

    #[step(emits = [FarLeft, Right])]
    fn start(ctx: &Context, _: StartEvent) -> Result<()> {
        ctx.send(&FarLeft { n: 1 })?;
        ctx.send(&Right { n: 2 })
    }

    #[step(accept_subtypes, waits = [Left])]
    fn both(ctx: &Context, (left, right): (Left, Right)) -> Result<Pair> {
        let more = ctx.wait_for::<Left>().event()?;
        Ok(Pair {
            n: left.n + 10 * right.n + 100 * more.n,
        })
    }

    #[step]
    fn end(_: &Context, ev: Pair) -> Result<Stop> {
        Ok(Stop::new(ev.n))
    }

    workflow!("joined", steps = [start, both, end]);
}

/// Joins and waits take subtypes too.
#[test]
fn joins_and_waits_of_subtypes() {
    let run = Session::new(&joined::WORKFLOW).run(&()).unwrap();
    assert_eq!(run.waiting(), ["Left #1"]);
    run.post("FarLeft", &map([("n", 3.into())])).unwrap();
    assert_eq!(run.result::<u32>().unwrap(), 321);
}

mod configured {
    use super::*;

    #[derive(StartEvent)]
    struct StartEvent;

    #[step]
    fn start(ctx: &Context, _: StartEvent) -> Result<Stop> {
        let answer: HttpResponse = ctx.http("web").get("https://weft.test/a")?;
        let same: Value = ctx.call("web", "request", &map([("path", "a".into())]))?;
        assert_eq!(same.get("status").and_then(Value::as_i64), Some(200));
        let denied = ctx.call::<()>("other", "x", &()).unwrap_err();
        assert_eq!(denied.code(), code::PERMISSION_DENIED);
        let unknown = ctx.call::<()>("none", "x", &()).unwrap_err();
        assert_eq!(unknown.code(), code::FAILED_PRECONDITION);
        let failed = ctx.http("web").get("gone").unwrap_err();
        assert_eq!(failed.message(), "call \"web\": nobody is there");
        let wrong = ctx.call::<u32>("web", "request", &map([("path", "a".into())]));
        assert!(
            wrong
                .unwrap_err()
                .message()
                .starts_with("call \"web\": at byte 0: ")
        );
        let kind = answer.header("Content-Type").map(str::to_owned);
        Ok(Stop::new((
            kind,
            answer.text()?.to_owned(),
            ctx.config::<Value>()?,
        )))
    }

    workflow!(
        "configured",
        resources = [http("web"), resource("other", "llm").optional()],
        steps = [start],
    );
}

#[test]
fn resources_and_configuration() {
    let session =
        Session::new(&configured::WORKFLOW).resource("web", |method: &str, r: HttpRequest| {
            if r.path == "gone" {
                return Err(Error::new(code::UNAVAILABLE, "nobody is there"));
            }
            let headers = BTreeMap::from([("content-type".into(), vec!["text/plain".into()])]);
            let body = Bytes(format!("{method} {} {}{}", r.method, r.url, r.path).into_bytes());
            Ok(HttpResponse {
                status: 200,
                headers,
                body,
            })
        });
    let session = session.configure("start", &map([("depth", 3.into())]));
    let run = session.run(&()).unwrap();
    let result: (String, String, Value) = run.result().unwrap();
    assert_eq!(result.0, "text/plain");
    assert_eq!(result.1, "request GET https://weft.test/a");
    assert_eq!(result.2, map([("depth", 3.into())]));
}
