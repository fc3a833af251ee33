//! Requests that may take a long time.

use std::time::Duration;

use super::{request, vector};
use crate::cbor::Decoder;
use crate::prelude::{HttpRequest, Value};
use weft_macros::{HumanResponseEvent, InputRequiredEvent};

#[derive(InputRequiredEvent)]
pub struct InputRequiredEvent {
    prefix: String,
}

#[derive(HumanResponseEvent)]
pub struct HumanResponseEvent {
    #[allow(dead_code)]
    role: String,
}

#[test]
fn requests_of_waits() {
    request("wait_for_event-minimal", |ctx| {
        drop(ctx.wait_for::<HumanResponseEvent>().event());
    });
    request("wait_for_event-full", |ctx| {
        let prefix = "manager, approve it?".into();
        let wait = ctx
            .wait_for::<HumanResponseEvent>()
            .named("manager")
            .ask(&InputRequiredEvent { prefix })
            .matching("role", "manager")
            .timeout(Duration::from_secs(24 * 60 * 60))
            .broadcast();
        drop(wait.event());
    });
    request("sleep-day", |ctx| {
        drop(ctx.sleep(Duration::from_secs(24 * 60 * 60)));
    });
}

#[test]
fn requests_of_children() {
    request("run_workflow-minimal", |ctx| {
        drop(ctx.run_workflow("accumulator", &()).result::<Value>());
    });
    request("run_workflow-shared", |ctx| {
        let empty = Value::map::<&str>([]);
        drop(
            ctx.run_workflow("a", &empty)
                .same_session()
                .result::<Value>(),
        );
    });
    // Except `shared`, which cannot be combined with a session's id.
    let full = full_without_shared();
    super::requested(&full, "run_workflow", |ctx| {
        let child = ctx
            .run_workflow("accumulator", &())
            .named("first-half")
            .in_session("s-2")
            .with_stream();
        drop(child.result::<Value>());
    });
}

fn full_without_shared() -> Vec<u8> {
    let mut full: Value = crate::cbor::from_slice(&vector("run_workflow-full")).unwrap();
    if let Value::Map(full) = &mut full
        && let Some(Value::Map(session)) = full.get_mut("session")
    {
        session.remove("shared").expect("shared");
    }
    crate::cbor::to_vec(&full).unwrap()
}

#[test]
fn requests_of_resources() {
    request("call_resource-map", |ctx| {
        let payload = Value::map([("prompt", "a joke".into()), ("n", 1.into())]);
        drop(ctx.call::<Value>("llm", "POST", &payload));
    });
    request("call_resource-null", |ctx| {
        drop(ctx.call::<()>("clock", "", &()));
    });
    let order = HttpRequest::new("POST", "things")
        .query("q", "a b")
        .header("Accept", "text/plain")
        .body("a,b")
        .timeout(Duration::from_secs(5))
        .expect_success();
    request("call_resource-http", |ctx| {
        drop(ctx.http("crm").send(&order));
    });
    let sent = vector("call_resource-http");
    let mut decoder = Decoder::new(&sent);
    decoder.array().unwrap();
    decoder.skip().and_then(|()| decoder.skip()).unwrap();
    assert_eq!(decoder.value::<HttpRequest>().unwrap(), order);
}
