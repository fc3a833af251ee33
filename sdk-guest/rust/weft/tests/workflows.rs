//! Whole workflows, and what a context does for their steps.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use weft::code;
use weft::prelude::*;
use weft::testing::Session;

fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::map(entries)
}

/// Lists within lists, a collector that takes some, a join and sends.
mod streams {
    use super::*;

    #[derive(StartEvent)]
    struct StartEvent {
        sizes: Vec<u64>,
    }

    #[derive(Event)]
    struct Row {
        size: u64,
    }

    #[derive(Event)]
    struct Cell {
        n: u64,
    }

    #[derive(Event)]
    struct Half {
        n: u64,
    }

    #[derive(Event)]
    struct Sum {
        sum: u64,
    }

    #[derive(Event)]
    struct First {
        n: Option<u64>,
    }

    #[derive(Event)]
    struct Total {
        sums: Vec<u64>,
    }

    #[step(emits = [First])]
    fn start(ctx: &Context, ev: StartEvent) -> Result<Vec<Row>> {
        ctx.send(&First {
            n: ev.sizes.first().copied(),
        })?;
        Ok(ev.sizes.into_iter().map(|size| Row { size }).collect())
    }

    #[step]
    fn row(_: &Context, ev: Row) -> Result<Vec<Cell>> {
        Ok((1..=ev.size).map(|n| Cell { n }).collect())
    }

    /// Drops odd cells.
    #[step]
    fn cell(_: &Context, ev: Cell) -> Result<Option<Half>> {
        Ok(ev.n.is_multiple_of(2).then_some(Half { n: ev.n / 2 }))
    }

    #[step]
    fn sum_row(_: &Context, all: Vec<Half>) -> Result<Sum> {
        Ok(Sum {
            sum: all.iter().map(|h| h.n).sum(),
        })
    }

    #[step]
    fn total(_: &Context, all: Vec<Sum>) -> Result<Total> {
        Ok(Total {
            sums: all.iter().map(|s| s.sum).collect(),
        })
    }

    #[step]
    fn finish(_: &Context, (first, total): (First, Total)) -> Result<Stop> {
        Ok(Stop::new((first.n, total.sums)))
    }

    workflow!(
        "streams",
        steps = [start, row, cell, sum_row, total, finish]
    );
}

#[test]
fn lists_within_lists() {
    let run = |sizes: &[u64]| -> (Option<u64>, Vec<u64>) {
        let start = map([("sizes", Value::list(sizes.iter().copied()))]);
        Session::new(&streams::WORKFLOW)
            .run(&start)
            .unwrap()
            .result()
            .unwrap()
    };
    assert_eq!(run(&[]), (None, vec![]));
    assert_eq!(run(&[4]), (Some(4), vec![3]));
    assert_eq!(run(&[0, 1, 6]), (Some(0), vec![0, 0, 6]));
}

/// People, choices, collecting by hand, the stream and the log.
mod people {
    use super::*;

    #[derive(StartEvent)]
    pub struct Begin {
        #[weft(default = 2)]
        pub answers: usize,
    }

    #[derive(InputRequiredEvent)]
    struct InputRequiredEvent {
        prefix: String,
    }

    #[derive(HumanResponseEvent)]
    struct HumanResponseEvent {
        response: Value,
    }

    #[derive(Event)]
    struct Progress {
        done: usize,
    }

    #[derive(StopEvent, Debug, PartialEq)]
    pub struct Answered {
        pub answers: Vec<Value>,
    }

    #[derive(Events)]
    enum Turn {
        Begin(Begin),
        Answer(HumanResponseEvent),
    }

    #[derive(Events)]
    enum Next {
        Ask(InputRequiredEvent),
        Done(Answered),
        Nothing(Stop),
    }

    /// Asks until there are enough answers.
    #[step(streams = [Progress], workers = 2, timeout = "5s", retry = attempts(2).on_message("x"))]
    fn turn(ctx: &Context, ev: Turn) -> Result<Option<Next>> {
        let ask = |n: usize| {
            let prefix = format!("{n} answers: ");
            Ok(Some(Next::Ask(InputRequiredEvent { prefix })))
        };
        let (done, wanted) = match ev {
            Turn::Begin(ev) => {
                ctx.set("wanted", &ev.answers)?;
                weft::println!("asking for {}", ev.answers);
                (0, ev.answers)
            }
            Turn::Answer(ev) => {
                let done = ctx.append("answers", &ev.response)?;
                ctx.stream(&Progress { done })?;
                ctx.log(
                    Level::Warn,
                    format_args!("answer {done}"),
                    &[("is", ev.response)],
                );
                (done, ctx.get("wanted")?)
            }
        };
        match wanted {
            0 => Ok(Some(Next::Nothing(Stop::new("nothing")))),
            n if n == done => Ok(Some(Next::Done(Answered {
                answers: ctx.get("answers")?,
            }))),
            n => ask(n),
        }
    }

    workflow!(
        "people",
        timeout = none,
        version = "1",
        description = "Asks.",
        steps = [turn]
    );
}

#[test]
fn people_are_asked() {
    let session = Session::new(&people::WORKFLOW);
    let run = session.run(&()).unwrap();
    for answer in [Value::Null, 2.5.into()] {
        assert!(!run.has_ended());
        let response = map([("response", answer)]);
        run.post("HumanResponseEvent", &response).unwrap();
    }
    let answered = people::Answered {
        answers: vec![Value::Null, 2.5.into()],
    };
    assert_eq!(run.result::<people::Answered>().unwrap(), answered);
    let streamed: Vec<_> = run.streamed().into_iter().map(|e| e.name).collect();
    let asked = "InputRequiredEvent";
    assert_eq!(streamed, [asked, "Progress", asked, "Progress"]);
    let log = run.log();
    assert_eq!((log[0].level, log[0].message.as_str()), (0, "asking for 2"));
    assert_eq!((log[2].level, log[2].message.as_str()), (4, "answer 2"));
    assert_eq!(log[2].attributes, map([("is", 2.5.into())]));
}

#[test]
fn a_stop_event_among_others() {
    let run = Session::new(&people::WORKFLOW)
        .run(&people::Begin { answers: 0 })
        .unwrap();
    assert_eq!(run.result::<String>().unwrap(), "nothing");
}

#[test]
fn the_manifest() {
    let names = |list: &[&str]| Value::list(list.iter().copied());
    let manifest = people::WORKFLOW.manifest().unwrap();
    let step = map([
        ("name", "turn".into()),
        ("description", "Asks until there are enough answers.".into()),
        (
            "accepts",
            Value::list([Value::list([
                "any".into(),
                names(&["Begin", "HumanResponseEvent"]),
            ])]),
        ),
        (
            "emits",
            names(&["InputRequiredEvent", "Answered", "StopEvent"]),
        ),
        ("workers", 2.into()),
        ("timeout", 5_000_000_000u64.into()),
        (
            "retry",
            map([
                ("stop", map([("attempts", 2.into())])),
                ("when", map([("message", "x".into())])),
            ]),
        ),
    ]);
    assert_eq!(manifest.get("steps").unwrap(), &Value::list([step]));
    for (key, value) in [
        ("abi", 1.into()),
        ("workflow", "people".into()),
        ("timeout", 0.into()),
        ("version", "1".into()),
        ("description", "Asks.".into()),
    ] {
        assert_eq!(manifest.get(key), Some(&value), "{key}");
    }
    assert_eq!(manifest.get("state"), None);
    let events = manifest.get("events").and_then(Value::as_map).unwrap();
    let kind = |name: &str, key: &str| events[name].get(key).and_then(Value::as_str);
    assert_eq!(events.len(), 5, "{events:?}"); // the base stop event is known
    assert_eq!(kind("Begin", "kind"), Some("start"));
    assert_eq!(kind("Begin", "extends"), Some("StartEvent"));
    assert_eq!(kind("HumanResponseEvent", "kind"), Some("human_response"));
    assert_eq!(kind("HumanResponseEvent", "extends"), None);
    assert_eq!(kind("Progress", "kind"), None);
    let title = events["Begin"].get("schema").and_then(|s| s.get("title"));
    assert_eq!(title, Some(&"Begin".into()));
}

mod collecting {
    use super::*;

    #[derive(StartEvent)]
    struct StartEvent;

    #[derive(Event)]
    struct A {
        a: u8,
    }
    #[derive(Event)]
    struct B {
        b: u8,
    }

    #[derive(Events)]
    enum Either {
        A(A),
        B(B),
    }

    #[step(emits = [A, B])]
    fn start(ctx: &Context, _: StartEvent) -> Result<()> {
        for i in 0..3 {
            ctx.send_to("pairs", &A { a: i })?;
        }
        ctx.send_to("pairs", &B { b: 9 })?;
        let wrong = ctx.send_to("nobody", &B { b: 9 }).unwrap_err();
        assert_eq!(wrong.code(), code::NOT_FOUND);
        Ok(())
    }

    #[step]
    fn pairs(ctx: &Context, ev: Either) -> Result<Option<Stop>> {
        if let Either::A(ev) = &ev {
            let undeclared = ctx.send(ev).unwrap_err();
            assert_eq!(
                undeclared.message(),
                "send: A is not declared: add it to the step, #[step(emits = [A])]"
            );
        }
        let set = ctx.collect::<(B, A, A)>()?;
        Ok(set.map(|(b, first, second)| Stop::new((b.b, first.a, second.a))))
    }

    workflow!("collecting", steps = [start, pairs]);
}

#[test]
fn collects() {
    let run = Session::new(&collecting::WORKFLOW).run(&()).unwrap();
    assert_eq!(run.result::<(u8, u8, u8)>().unwrap(), (9, 0, 1));
}

mod surroundings {
    use super::*;

    #[derive(StartEvent)]
    struct StartEvent;

    #[derive(Event)]
    struct Chunk {
        bytes: usize,
    }

    #[derive(Data)]
    struct Config {
        #[weft(default = 4)]
        chunks: usize,
    }

    #[step]
    fn start(ctx: &Context, _: StartEvent) -> Result<Vec<Chunk>> {
        let chunks = ctx.config::<Config>()?.chunks;
        Ok((0..chunks).map(|bytes| Chunk { bytes }).collect())
    }

    /// Fires at the second arrival.
    #[step(take = 2)]
    fn some(ctx: &Context, all: Vec<Chunk>) -> Result<Stop> {
        let run = ctx.run();
        assert_eq!((run.workflow.as_str(), run.attempt), ("surroundings", 1));
        assert_eq!(run.started, ctx.now());
        assert!(ctx.random(4097).is_err());
        let n = all.iter().map(|c| ctx.random(c.bytes).unwrap().len());
        Ok(Stop::new((ctx.unix_seconds(), n.collect::<Vec<_>>())))
    }

    workflow!("surroundings", steps = [start, some]);
}

#[test]
fn time_chance_and_configuration() {
    let session = Session::new(&surroundings::WORKFLOW);
    session.set_clock(SystemTime::UNIX_EPOCH + Duration::from_millis(1500));
    let run = session.run(&()).unwrap();
    let (seconds, sizes): (f64, Vec<usize>) = run.result().unwrap();
    assert_eq!((seconds, sizes), (1.5, vec![0, 1]));
}

mod twice {
    use super::*;

    mod other {
        use weft::prelude::*;
        #[derive(Event)]
        pub struct ItemEvent;
    }

    #[derive(StartEvent)]
    struct StartEvent;
    #[derive(Event)]
    struct ItemEvent;

    #[step]
    fn one(_: &Context, _: StartEvent) -> Result<ItemEvent> {
        Ok(ItemEvent)
    }

    #[step]
    fn two(_: &Context, _: other::ItemEvent) -> Result<Stop> {
        Ok(Stop::new(()))
    }

    workflow!("twice", steps = [one, two]);
}

#[test]
fn two_types_of_one_name() {
    let error = twice::WORKFLOW.manifest().unwrap_err();
    assert!(
        error
            .message()
            .starts_with("two event types are named ItemEvent")
    );
}

/// A result that cannot be sent fails the step, with the reason.
mod unsendable {
    use super::*;

    #[derive(StartEvent)]
    struct StartEvent;

    #[step]
    fn start(_: &Context, _: StartEvent) -> Result<Stop> {
        Ok(Stop::new(BTreeMap::from([("ratio", f64::NAN)])))
    }

    workflow!("unsendable", steps = [start]);
}

#[test]
fn results_that_cannot_be_sent() {
    let error = Session::new(&unsendable::WORKFLOW).run(&()).err().unwrap();
    assert_eq!(error.code(), code::INVALID_MESSAGE);
    let want = "cannot give the result of step \"start\": StopEvent: ratio: a float is NaN";
    assert!(error.message().starts_with(want), "{error}");
}
