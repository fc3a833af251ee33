//! What a context does with the session's state.

use weft::prelude::*;
use weft::testing::Session;

fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::map(entries)
}

/// Steps that try one thing each.
mod state {
    use super::*;

    #[derive(StartEvent)]
    struct StartEvent {
        what: String,
    }

    #[derive(State)]
    struct Tally {
        count: i64,
        cart: Cart,
    }

    #[derive(Data, Default)]
    struct Cart {
        items: Vec<String>,
        note: Option<String>,
    }

    impl Default for Tally {
        fn default() -> Self {
            Tally {
                count: 10,
                cart: Cart::default(),
            }
        }
    }

    #[step]
    fn try_it(ctx: &Context<Tally>, ev: StartEvent) -> Result<Stop> {
        Ok(match ev.what.as_str() {
            "edit" => Stop::new(ctx.edit(|t| {
                t.count += 1;
                t.cart.note = Some("noted".into());
                t.count
            })?),
            "failing edit" => Stop::new(ctx.try_edit(|t| {
                t.count = 0;
                Err::<(), _>(Error::new("changed_my_mind", "no edit"))
            })?),
            "edit within an edit" => Stop::new(ctx.edit(|_| ctx.edit(|_| ()))??),
            "edit at" => Stop::new(ctx.edit_at("cart.items", |items: &mut Vec<String>| {
                items.push("tea".into());
                items.len()
            })?),
            "edit of nothing" => Stop::new(ctx.edit_at("nowhere", |_: &mut i64| ())?),
            "edit of another type" => Stop::new(ctx.edit_at("count", |_: &mut String| ())?),
            "read" => Stop::new((
                ctx.get::<i64>("count")?,
                ctx.get_or("nowhere", "other".to_owned())?,
                ctx.get_or("count", 0)?,
            )),
            "get nothing" => Stop::new(ctx.get::<i64>("cart.items.0")?),
            "changes" => {
                ctx.set("a.b", &1)?;
                ctx.merge("a", &map([("c", 2.into())]))?;
                Stop::new((
                    ctx.append("log", "line")?,
                    ctx.increment("count", -3)?,
                    ctx.increment_float("rate", 7.5)?,
                    ctx.delete("a.b")?,
                    ctx.delete("a.b")?,
                    ctx.get::<Value>("a")?,
                ))
            }
            "batch" => Stop::new(
                ctx.batch()
                    .test("count", &10)
                    .set("x", &[1, 2])
                    .increment("count", 1)
                    .commit()?,
            ),
            "failing batch" => Stop::new(ctx.batch().clear().test("count", &11).commit()?),
            other => return Err(Error::new("unknown", other).not_retryable()),
        })
    }

    workflow!("state", state = Tally, steps = [try_it]);
}

/// The result of one thing tried in a session.
fn try_in(session: &Session, what: &str) -> Result<Value> {
    session.run(&map([("what", what.into())]))?.result()
}

fn fault(what: &str) -> String {
    let session = Session::new(&state::WORKFLOW);
    let before = session.state();
    let error = try_in(&session, what).unwrap_err();
    assert_eq!(session.state(), before, "{what}");
    error.to_string()
}

#[test]
fn edits() {
    let session = Session::new(&state::WORKFLOW);
    assert_eq!(try_in(&session, "edit").unwrap(), 11.into());
    assert_eq!(session.read::<String>("cart.note").unwrap(), "noted");
    assert_eq!(try_in(&session, "edit at").unwrap(), 1.into());
    assert_eq!(try_in(&session, "edit").unwrap(), 12.into());
    assert_eq!(session.read::<Vec<String>>("cart.items").unwrap(), ["tea"]);
}

#[test]
fn failing_edits_change_nothing() {
    assert_eq!(fault("failing edit"), "changed_my_mind: no edit");
    assert_eq!(
        fault("edit within an edit"),
        "failed_precondition: edit \"\": state_begin may not be called within an edit"
    );
    assert_eq!(
        fault("edit of nothing"),
        "not_found: edit \"nowhere\": there is nothing at \"nowhere\"; \
         set the path before it is edited, or give the state a default for it"
    );
    assert_eq!(
        fault("edit of another type"),
        "invalid_message: edit \"count\": at byte 0: an integer where a string is expected"
    );
    assert_eq!(
        fault("failing batch"),
        "conflict: batch: the test of \"count\" failed"
    );
    assert_eq!(
        fault("get nothing"),
        "not_found: get \"cart.items.0\": there is nothing at \"cart.items.0\"; \
         get_or(path, other) gives another value then"
    );
    assert_eq!(fault("what?"), "unknown: what?");
}

#[test]
fn reads_and_single_changes() {
    let session = Session::new(&state::WORKFLOW);
    let read = Value::list([Value::Int(10), "other".into(), 10.into()]);
    assert_eq!(try_in(&session, "read").unwrap(), read);
    let changes: (usize, i64, f64, bool, bool, Value) =
        try_in(&session, "changes").unwrap().read().unwrap();
    assert_eq!(changes, (1, 7, 7.5, true, false, map([("c", 2.into())])));
    assert_eq!(session.read::<Vec<String>>("log").unwrap(), ["line"]);
}

#[test]
fn batches() {
    let session = Session::new(&state::WORKFLOW);
    let results = Value::list([Value::Null, Value::Null, 11.into()]);
    assert_eq!(try_in(&session, "batch").unwrap(), results);
    assert_eq!(session.read::<Vec<u8>>("x").unwrap(), [1, 2]);
}

/// Keys that the state's type does not declare stay through an edit.
#[test]
fn undeclared_keys_stay() {
    let session = Session::new(&state::WORKFLOW);
    try_in(&session, "batch").unwrap();
    try_in(&session, "edit").unwrap();
    assert_eq!(session.read::<Vec<u8>>("x").unwrap(), [1, 2]);
    assert_eq!(session.read::<i64>("count").unwrap(), 12);
}
