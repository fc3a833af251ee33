//! Calls that may take long.

use std::time::Duration;

use weft::prelude::*;

use crate::{CallEvent, HumanResponseEvent, InputRequiredEvent, ShownEvent, State, TickEvent};

pub(crate) type Steps = Context<State>;

#[step(
    waits = [HumanResponseEvent, TickEvent],
    streams = [InputRequiredEvent, ShownEvent],
    retry = chain(&[fixed("1ms"), sum(&[fixed("1ms"), random_wait("0ms", "1ms")])])
        .and(all_of(&[on_codes(&["flaky"]), not(&on_message("final"))]))
        .attempts(4),
)]
pub(crate) fn call(ctx: &Context<State>, ev: CallEvent) -> Result<Stop> {
    let time = Duration::from_nanos(ev.n.unsigned_abs());
    Ok(match ev.what.as_str() {
        "approve" => approve(ctx, &ev)?,
        "ticks" => ticks(ctx, ev.n, None)?,
        "assume" => {
            let answer = ctx.wait_for::<HumanResponseEvent>();
            Stop::new(answer.matching("role", "manager").event()?.approved)
        }
        "named" => ticks(ctx, ev.n, Some("tick"))?,
        "patience" => {
            let tick = ctx.wait_for::<TickEvent>().timeout(time).event();
            Stop::new(code_of(tick))
        }
        "nap" => {
            let before = ctx.now();
            ctx.sleep(time)?;
            Stop::new(ctx.now().duration_since(before)? >= time)
        }
        "once" => once(ctx)?,
        "children" => children(ctx)?,
        "fetch" => fetch(ctx, &ev)?,
        "keep" => crate::kv::keep(ctx)?,
        "tally" => crate::kv::tally(ctx, &ev.text)?,
        "edits" => crate::state::edits(ctx)?,
        "regions" => crate::state::regions(ctx)?,
        "read" => crate::state::read(ctx)?,
        "print" => say(ctx, &ev)?,
        "panic" => return crate::state::fail(ctx, &ev.text),
        "count" => Stop::new(ctx.increment("count", ev.n)?),
        "show" => {
            ctx.stream(&ShownEvent { text: ev.text })?;
            Stop::new(())
        }
        "flaky" => {
            let attempt = ctx.run().attempt;
            if attempt <= ev.n.unsigned_abs() {
                let message = format_args!("{} at attempt {attempt}", ev.text);
                return Err(Error::new("flaky", message));
            }
            Stop::new(attempt)
        }
        _ => return Err(Error::new("asked", ev.text)),
    })
}

/// Logs at all levels.
fn say(ctx: &Steps, ev: &CallEvent) -> Result<Stop> {
    ctx.debug(&ev.text);
    ctx.info(&ev.text);
    ctx.warn(&ev.text);
    ctx.error(&ev.text);
    let list = Value::List(vec![1.into(), 2.into()]);
    ctx.log(Level::Info, &ev.text, &[("n", ev.n.into()), ("list", list)]);
    let text = format!("{}{}", ev.text, ev.n);
    ctx.stream(&ShownEvent { text })?;
    Ok(Stop::new(()))
}

fn code_of<T>(result: Result<T>) -> String {
    result.err().map_or(String::new(), |e| e.code().to_owned())
}

/// Asks people one after the other.
fn approve(ctx: &Steps, ev: &CallEvent) -> Result<Stop> {
    let asked = ctx.increment("count", 1)?; // once, however often it waits
    let mut approved = true;
    for role in ["manager", "finance"] {
        let prefix = format!("{role}, approve {}?", ev.text);
        let answer = ctx
            .wait_for::<HumanResponseEvent>()
            .named(role)
            .matching("role", role)
            .ask(&InputRequiredEvent { prefix })
            .event()?;
        approved &= answer.approved;
    }
    Ok(Stop::new((approved, asked)))
}

fn ticks(ctx: &Steps, n: i64, name: Option<&str>) -> Result<Stop> {
    let mut numbers = Vec::new();
    for _ in 0..n {
        let mut wait = ctx.wait_for::<TickEvent>();
        if let Some(name) = name {
            wait = wait.named(name);
        }
        numbers.push(wait.event()?.n);
    }
    Ok(Stop::new(numbers))
}

/// Begins a child, fails, and has the child's result when it is tried again.
fn once(ctx: &Steps) -> Result<Stop> {
    let run = ctx.run();
    let start = Value::map([("what", "count".into()), ("n", 5.into())]);
    let child = ctx.run_workflow(&run.workflow, &start);
    let count: i64 = child.same_session().named("first").result()?;
    if run.attempt < 3 {
        return Err(Error::new("flaky", "after the child"));
    }
    Ok(Stop::new((count, run.attempt)))
}

/// Runs children of all sorts.
fn children(ctx: &Steps) -> Result<Stop> {
    let run = ctx.run();
    let mut all: Vec<Value> = Vec::new();
    let count = Value::map([("what", "count".into()), ("n", 1.into())]);
    let child = || ctx.run_workflow(&run.workflow, &count);
    for child in [
        child(),
        child(),
        child().same_session(),
        child().same_session(),
        child().in_session(&run.run_id),
    ] {
        all.push(child.result::<i64>()?.into());
    }
    let start = |what: &str, text: &str| Value::map([("what", what.into()), ("text", text.into())]);
    let show = start("show", "shown by a child");
    ctx.run_workflow(&run.workflow, &show).result::<()>()?;
    let child = ctx.run_workflow(&run.workflow, &show).with_stream();
    child.result::<()>()?;
    let fail = start("fail", "by a child");
    for failed in [
        ctx.run_workflow(&run.workflow, &fail),
        ctx.run_workflow("nobody", &()),
        ctx.run_workflow(&run.workflow, &()), // without what it must have
    ] {
        all.push(code_of(failed.result::<Value>()).into());
    }
    Ok(Stop::new(all))
}

fn fetch(ctx: &Steps, ev: &CallEvent) -> Result<Stop> {
    let mut request = HttpRequest::new("POST", &ev.text)
        .query("q", "a b")
        .header("X-Scene", "fetch")
        .body("tea");
    if ev.n > 0 {
        request = request.expect_success();
    }
    let answer = ctx.http("web").send(&request)?;
    let header = answer.header("X-Answer").unwrap_or("");
    Ok(Stop::new((answer.status, header, answer.text()?)))
}
