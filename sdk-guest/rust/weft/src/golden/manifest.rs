//! What workflows and steps can declare.

use std::collections::BTreeMap;

use super::vector;
use crate::cbor;
use crate::prelude::*;
use crate::retry::{
    Retry, all_of, always, any_of, attempts, chain, defaults, exponential, exponential_jitter,
    fixed, forever, give_up_after, incrementing, never, not, on_codes, on_message, random_wait,
    sum,
};

#[test]
fn retry_policies() {
    let conditions = any_of(
        const {
            &[
                on_codes(&["flaky", "timeout"]),
                on_message("connection refused"),
                all_of(const { &[not(const { &on_codes(&["invalid"]) }), on_message("")] }),
            ]
        },
    );
    let pause = chain(
        const {
            &[
                fixed("0s"),
                sum(const { &[fixed("1s"), random_wait("1s", "1s")] }),
            ]
        },
    );
    let stops = any_of(
        const {
            &[
                attempts(100),
                all_of(const { &[give_up_after("1h"), forever()] }),
            ]
        },
    );
    for (name, policy) in [
        ("always", always().and(forever())),
        ("chain-and-sum", pause),
        ("conditions", conditions),
        ("empty", defaults()),
        ("exponential", exponential("1s", 2.0, "1h")),
        ("incrementing", incrementing("1s", "2s", "1m")),
        ("jitter", exponential_jitter("1s", 1.5, "1m", "1s")),
        ("never", never()),
        ("random", random_wait("0s", "1s")),
        ("stops", stops),
    ] {
        let wanted: Value = cbor::from_slice(&vector(&format!("manifest-retry-{name}"))).unwrap();
        let steps = wanted.get("steps").and_then(Value::as_list).unwrap();
        assert_eq!(steps[0].get("retry"), Some(&policy.manifest()), "{name}");
    }
}

/// Several conditions must all hold, and the first rule to give up applies.
#[test]
fn retry_rules_side_by_side() {
    const ONE: Retry = on_codes(&["a"])
        .attempts(3)
        .and(fixed("1ns"))
        .give_up_after("1h")
        .and(not(&on_message("b")));
    const OTHER: Retry = all_of(&[on_codes(&["a"]), not(&on_message("b"))])
        .and(fixed("1ns"))
        .and(any_of(&[attempts(3), give_up_after("1h")]));
    assert_eq!(ONE.manifest(), OTHER.manifest());
}

/// The items.
#[derive(StartEvent)]
struct ItemsEvent;
#[derive(Event)]
struct ItemEvent;
#[derive(InputRequiredEvent)]
struct AskEvent;
#[derive(HumanResponseEvent)]
struct AnswerEvent;
/// One is done.
#[derive(Event)]
struct ProcessedEvent;
#[derive(StopEvent)]
struct DoneEvent;

#[derive(Events)]
#[allow(dead_code)]
enum Input {
    Item(ItemEvent),
    Answer(AnswerEvent),
}

#[step(emits = [AskEvent])]
fn start(_: &Context, _: ItemsEvent) -> Result<Vec<ItemEvent>> {
    Ok(Vec::new())
}

/// Does the work.
#[step(atomic, accept_subtypes, workers = 4, timeout = "1m", retry = fixed("10ms").attempts(3).on_codes(&["flaky"]))]
fn process_item(_: &Context, _: Input) -> Result<ProcessedEvent> {
    Ok(ProcessedEvent)
}

#[step(take = 2)]
fn finalize(_: &Context, _: Vec<ProcessedEvent>) -> Result<DoneEvent> {
    Ok(DoneEvent)
}

#[step(catches = [process_item, cancelled, timeout], max_recoveries = 1)]
fn recover(_: &Context, _: StepFailed) -> Result<DoneEvent> {
    Ok(DoneEvent)
}

workflow!(
    "accumulator",
    part,
    version = "1.2.0",
    description = "processes items one by one",
    timeout = "45s",
    resources = [
        resource("llm", "llm")
            .description("writes the answers")
            .optional(),
        http("api"),
    ],
    steps = [start, process_item, finalize, recover]
);

/// The macros can declare everything in the full manifest vector.
#[test]
fn the_full_manifest() {
    let map = |v: &Value| v.as_map().unwrap().clone();
    let mut got = map(&WORKFLOW.manifest().unwrap());
    let mut want = map(&cbor::from_slice(&vector("manifest-full")).unwrap());
    want.remove("state"); // whose schema differs
    // This SDK refuses a step that both waits and is atomic, lists emits in its own
    // order, and uses comments that are sentences.
    let steps = |list: Option<Value>| {
        let mut list = list.unwrap().as_list().unwrap().to_vec();
        for step in &mut list {
            let Value::Map(step) = step else { panic!() };
            step.remove("waits");
            step.remove("description");
            if let Some(Value::List(emits)) = step.get_mut("emits") {
                emits.sort_by_key(|e| e.as_str().is_some());
            }
        }
        list
    };
    assert_eq!(steps(got.remove("steps")), steps(want.remove("steps")));
    let kinds = |events: Option<Value>| -> BTreeMap<String, Option<Value>> {
        let events = map(&events.unwrap()).into_iter();
        events.map(|(k, v)| (k, v.get("kind").cloned())).collect()
    };
    assert_eq!(kinds(got.remove("events")), kinds(want.remove("events")));
    assert_eq!(got, want);
}

#[step(catches = all)]
fn rescue(_: &Context, _: StepFailed) -> Result<DoneEvent> {
    Ok(DoneEvent)
}

#[step(waits = [AnswerEvent], catches = ["start", "another plugin's"])]
fn wait(_: &Context, _: StepFailed) -> Result<DoneEvent> {
    Ok(DoneEvent)
}

#[test]
fn what_few_steps_say() {
    use crate::step::Step;
    let describe = |extras: &crate::step::Extras| {
        let mut step = Value::map::<&str>([]);
        (extras.describe)(extras, &mut step);
        step
    };
    let all = Value::map([("catches", "*".into())]);
    assert_eq!(describe(rescue::DECL.extras.unwrap()), all);
    let some = Value::map([
        ("catches", Value::list(["start", "another plugin's"])),
        ("waits", Value::list(["AnswerEvent"])),
    ]);
    assert_eq!(describe(wait::DECL.extras.unwrap()), some);
}
