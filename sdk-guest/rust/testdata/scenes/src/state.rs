//! Calls that read and change the state, and failures.

use weft::prelude::*;

use crate::State;

type Steps = Context<State>;

/// What calls gave: their values, or the codes of their errors.
#[derive(Default)]
struct Notes(Vec<Value>);

impl Notes {
    fn add<T: Into<Value>>(&mut self, result: Result<T>) {
        self.0.push(match result {
            Ok(value) => value.into(),
            Err(e) => e.code().into(),
        });
    }

    /// Adds what succeeded without a value, or failed.
    fn did(&mut self, result: Result<()>) {
        self.add(result.map(|()| Value::Null));
    }
}

impl Notes {
    /// Adds that something succeeded, and what it gave.
    fn both<T: Into<Value>>(&mut self, result: Result<T>) {
        self.0.push(Value::Null);
        self.add(result);
    }
}

fn value_of(state: &State) -> Value {
    let log = state.log.iter().map(|line| line.as_str().into()).collect();
    Value::map([("count", state.count.into()), ("log", Value::List(log))])
}

/// Makes each kind of edit, well and badly, alone and in batches.
pub(crate) fn edits(ctx: &Steps) -> Result<Stop> {
    let mut n = Notes::default();
    n.did(ctx.set("m.a.b", &1));
    n.did(ctx.set("log.7", "x"));
    n.did(ctx.set("count", "many")); // the schema wants a number
    n.add(ctx.append("log", "one").map(|n| n as u64));
    n.add(ctx.append("m.list", &((), true, 1.5)).map(|n| n as u64));
    n.add(ctx.append("count", "x").map(|n| n as u64));
    n.add(ctx.increment("count", 5));
    n.add(ctx.increment("m.a", 1));
    n.add(ctx.increment_float("m.rate", 0.5));
    let letter = Value::map([("c", "\u{e4}".into())]);
    n.did(ctx.merge("m", &Value::map([("a", letter)])));
    n.did(ctx.test("m.a.c", "\u{e4}"));
    n.did(ctx.test("m.a.c", "other"));
    n.add(ctx.delete("m.list.-1"));
    n.add(ctx.delete("m.list.-1"));
    let results = ctx
        .batch()
        .test("count", &5)
        .set("m.a", &7)
        .increment("count", -6)
        .append("log", "two")
        .delete("m.rate")
        .merge("m", &Value::map([("z", 1.into())]))
        .increment_float("m.f", 0.25)
        .commit();
    n.add(results.map(Value::List));
    let results = ctx.batch().set("m.a", &100).test("count", &0).commit();
    n.add(results.map(Value::List));
    n.both(ctx.get::<Value>(""));
    n.did(ctx.clear());
    n.add(ctx.state().map(|s| value_of(&s)));
    Ok(Stop::new(n.0))
}

/// Edits as if alone, and gives edits up.
pub(crate) fn regions(ctx: &Steps) -> Result<Stop> {
    let mut n = Notes::default();
    let edited = ctx.edit(|s| {
        s.count = 3;
        s.log.push("kept".into());
        n.did(ctx.set("count", &9)); // only reads are allowed here
        n.both(ctx.get::<i64>("count")); // what is committed
    });
    n.did(edited);
    n.did(ctx.try_edit(|s| {
        s.count = 100;
        Err(Error::new("error", "given up"))
    }));
    n.did(ctx.edit_at("log", |log: &mut Vec<String>| log.push("at a path".into())));
    n.did(ctx.edit_at("nothing", |_: &mut String| ()));
    n.add(ctx.state().map(|s| value_of(&s)));
    Ok(Stop::new(n.0))
}

#[derive(Data)]
struct Config {
    #[weft(default = "none")]
    model: String,
}

/// Asks for what is not the state's.
pub(crate) fn read(ctx: &Steps) -> Result<Stop> {
    let mut n = Notes::default();
    n.did(ctx.get::<Value>("nothing.at.all").map(drop));
    n.both(ctx.get_or("nothing", Value::List(vec![1.into()])));
    n.both(ctx.get_or("count", Value::from(9)));
    n.add(ctx.random(16).map(|b| b.len() as u64));
    n.add(ctx.random(5000).map(|b| b.len() as u64));
    let run = ctx.run();
    n.0.push(run.attempt.into());
    n.0.push(run.invocation.into());
    n.0.push(run.tenant.as_str().into());
    n.0.push(run.last_error.is_none().into());
    n.0.push((ctx.now() >= run.started).into());
    n.both(ctx.config::<Config>().map(|c| c.model));
    Ok(Stop::new(n.0))
}

/// Fails in the ways in which code does.
pub(crate) fn fail(ctx: &Steps, how: &str) -> Result<Stop> {
    ctx.increment("count", 1)?; // it stands
    let empty: Vec<i64> = ctx.get("nothing").unwrap_or_default();
    match how {
        "map" => panic!("a map that is not there"), // Rust has none
        "index" => Ok(Stop::new(empty[how.len()])),
        "zero" => Ok(Stop::new(how.len() / empty.len())),
        "wrapped" => {
            let cause = Error::new("inside", "the cause");
            Err(cause.context("around"))
        }
        _ => panic!("boom"),
    }
}
