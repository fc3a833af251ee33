//! Probe is a workflow for tests of the SDK in a real server: it gives back what
//! it was given, fails in every way that a step can fail, and asks a person.

use std::collections::BTreeMap;

use weft::prelude::*;

/// Says what to do, with fields of every kind.
#[derive(StartEvent)]
struct StartEvent {
    what: What,
    #[weft(default)]
    text: String,
    #[weft(default = 7, min = -9, max = 9)]
    small: i64,
    count: Option<u64>,
    ratio: Option<f64>,
    inner: Option<Inner>,
    #[weft(default)]
    list: Vec<Inner>,
    any: Option<Value>,
    #[weft(extra)]
    more: BTreeMap<String, Value>,
}

/// What to do.
#[derive(Data)]
enum What {
    Echo,
    Count,
    Fail,
    FailInEdit,
    Panic,
    PanicInEdit,
    Unwrap,
    Index,
    Number,
    Spin,
    Recurse,
    Ask,
}

/// Contains itself.
#[derive(Data)]
struct Inner {
    name: String,
    #[weft(name = "type")]
    kind: Option<Kind>,
    inner: Option<Box<Inner>>,
}

#[derive(Data)]
enum Kind {
    One,
    #[weft(name = "the other")]
    Other,
}

/// What was given; the fields that are none are left out.
#[derive(Data)]
struct Echo {
    text: String,
    small: i64,
    count: Option<u64>,
    ratio: Option<f64>,
    inner: Option<Inner>,
    list: Vec<Inner>,
    any: Option<Value>,
    more: BTreeMap<String, Value>,
}

#[derive(InputRequiredEvent)]
struct InputRequiredEvent {
    prefix: String,
    asked: u32,
}

#[derive(HumanResponseEvent)]
struct HumanResponseEvent {
    response: String,
}

#[derive(State, Default)]
struct State {
    #[weft(default)]
    count: u32,
    #[weft(default)]
    asked: u32,
    #[weft(default)]
    answers: Vec<String>,
}

#[derive(Events)]
enum Next {
    Ask(InputRequiredEvent),
    Done(Stop),
}

#[step]
fn begin(ctx: &Context<State>, ev: StartEvent) -> Result<Next> {
    let done = |result: Value| Ok(Next::Done(Stop::new(result)));
    match ev.what {
        What::Echo => Ok(Next::Done(Stop::new(Echo {
            text: ev.text,
            small: ev.small,
            count: ev.count,
            ratio: ev.ratio,
            inner: ev.inner,
            list: ev.list,
            any: ev.any,
            more: ev.more,
        }))),
        What::Count => done(
            ctx.edit(|s| {
                s.count += 1;
                s.count
            })?
            .into(),
        ),
        What::Fail => Err(Error::new("asked_to", ev.text)),
        What::FailInEdit => ctx.try_edit(|s| {
            s.count = 1000;
            Err(Error::new("asked_to", ev.text))
        }),
        What::Panic => panic!("asked to: {}", ev.text),
        What::PanicInEdit => ctx.edit(|s| {
            s.count = 1000;
            panic!("asked to: {}", ev.text)
        }),
        What::Unwrap => done(ev.any.unwrap()),
        What::Index => done(ev.text.as_bytes()[ev.text.len()].into()),
        What::Number => done(ev.text.parse::<u8>().expect("a small number").into()),
        What::Spin => loop {
            std::hint::black_box(&ev.text);
        },
        What::Recurse => done(depth(ev.small).into()),
        What::Ask => {
            let asked = ctx.edit(|s| {
                s.asked += 1;
                s.asked
            })?;
            let prefix = ev.text;
            Ok(Next::Ask(InputRequiredEvent { prefix, asked }))
        }
    }
}

/// Calls itself until the stack is at its end.
fn depth(n: i64) -> i64 {
    let frame = std::hint::black_box([n; 64]);
    if n == i64::MAX {
        return 0;
    }
    depth(n + 1) + frame[63]
}

#[step]
fn answered(ctx: &Context<State>, ev: HumanResponseEvent) -> Result<Stop> {
    let result = ctx.edit(|s| {
        s.answers.push(ev.response);
        (s.asked, s.answers.clone())
    })?;
    Ok(Stop::new(result))
}

workflow!(
    "probe-rust",
    state = State,
    steps = [begin, answered],
    timeout = none
);
