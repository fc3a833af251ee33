//! Tests of the crate with the golden vectors of the ABI, which the host uses, too:
//! `testdata/abi` of the project.

mod long;
mod manifest;

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::SystemTime;

use crate::boundary::Answer;
use crate::boundary::native::{self, Host};
use crate::cbor::{self, Decoder, Encoder, MAX_MESSAGE_DEPTH};
use crate::context::{Context, Invocation};
use crate::error::{Error, Result};
use crate::event::{self, Event, Stop};
use crate::prelude::{Level, StartEvent, Value, step, workflow};
use crate::state::Batch;
use crate::step::{Extras, Input, Output, Start, StepDecl};
use crate::workflow::step_export;
use weft_macros::Event;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../testdata/abi")
}

fn vector(name: &str) -> Vec<u8> {
    let path = folder().join(name).with_extension("cbor");
    fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The names of all vectors in a folder.
fn names(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).expect("the vectors' folder");
    let paths = files.map(|f| f.expect("a file").path());
    let stems = paths.filter(|p| p.extension().is_some_and(|e| e == "cbor"));
    let names: Vec<_> = stems
        .map(|p| {
            p.file_stem()
                .expect("a name")
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    assert!(
        names.len() > 50,
        "{} vectors in {}",
        names.len(),
        folder.display()
    );
    names
}

fn same(name: &str, got: &[u8]) {
    assert_eq!(hex(got), hex(&vector(name)), "{name}");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Every vector is plain data, and is encoded again to the same bytes.
#[test]
fn vectors_as_data() {
    for name in names(&folder()) {
        let bytes = vector(&name);
        let mut decoder = Decoder::with_limit(&bytes, MAX_MESSAGE_DEPTH);
        let value: Value = decoder.value().unwrap_or_else(|e| panic!("{name}: {e}"));
        decoder.end().unwrap();
        let mut encoder = Encoder::with_limit(MAX_MESSAGE_DEPTH);
        encoder.value(&value).unwrap();
        same(&name, &encoder.into_bytes());
        assert_eq!(Decoder::new(&bytes).raw().unwrap().len(), bytes.len());
    }
}

/// Invalid data is refused, whether it is read or only skipped.
#[test]
fn invalid_values() {
    let folder = folder().join("invalid");
    for name in names(&folder).iter().filter(|n| n.starts_with("value-")) {
        let bytes = fs::read(folder.join(name).with_extension("cbor")).unwrap();
        let read = cbor::from_slice::<Value>(&bytes);
        assert!(read.is_err(), "{name} reads as {read:?}");
    }
}

#[derive(Event, Debug, PartialEq)]
struct ItemEvent {
    item: String,
    index: usize,
}

#[derive(Event)]
struct ProgressEvent {
    i: u32,
}

#[derive(StartEvent, Debug, PartialEq)]
struct StartEvent {
    items: Vec<String>,
}

#[derive(Event)]
struct A;
#[derive(Event)]
struct B;
#[derive(Event)]
struct C;

fn milk() -> ItemEvent {
    ItemEvent {
        item: "milk".into(),
        index: 0,
    }
}

/// Records the calls, and answers with a fixed response.
#[derive(Default)]
struct Recorder {
    calls: RefCell<Vec<(String, Vec<u8>)>>,
    response: Vec<u8>,
    input: Vec<u8>,
    output: RefCell<Vec<u8>>,
}

impl Host for Recorder {
    fn call(&self, name: &str, request: &[u8]) -> Answer {
        self.calls.borrow_mut().push((name.into(), request.into()));
        (0, self.response.clone())
    }

    fn input(&self) -> Vec<u8> {
        self.input.clone()
    }

    fn output(&self, output: &[u8]) {
        self.output.replace(output.to_vec());
    }

    fn print(&self, _: &str) {}
}

static DECL: StepDecl = StepDecl {
    emits: &[ItemEvent::TYPE],
    streams: &[ProgressEvent::TYPE, long::InputRequiredEvent::TYPE],
    extras: Some(&Extras {
        waits: &[long::HumanResponseEvent::TYPE],
        ..Extras::NONE
    }),
    ..StepDecl::new(
        "test",
        <ItemEvent as Input>::DECL,
        <() as Output>::DECL,
        |_| Ok(Vec::new()),
    )
};

/// A context whose trigger is the event of a vector of collect_events.
fn context(collect: &str) -> Context {
    let request = vector(collect);
    let mut decoder = Decoder::new(&request);
    decoder.array().unwrap();
    let input = decoder.raw().unwrap().to_vec();
    let end = input.len();
    let start = Start {
        decl: &DECL,
        steps: &[],
        input,
        trigger: 0,
        given: Vec::new(),
    };
    Context::new(Invocation::new(start, end))
}

/// The first call that is made with the answer `response`.
fn first_call(response: &[u8], make: impl FnOnce()) -> (String, Vec<u8>) {
    let host = Rc::new(Recorder {
        response: response.into(),
        ..Recorder::default()
    });
    native::with(host.clone(), make);
    host.calls.take().into_iter().next().expect("a call")
}

/// Checks that a request of the SDK, answered with null, equals the vector with the name.
fn request(name: &str, make: impl FnOnce(&Context)) {
    answered(&[0xf6], name, make);
}

fn answered(response: &[u8], name: &str, make: impl FnOnce(&Context)) {
    let context = context("collect_events-minimal");
    let (call, request) = first_call(response, || make(&context));
    assert_eq!(Some(call.as_str()), name.split('-').next(), "{name}");
    same(name, &request);
}

/// Checks that a request of the SDK, answered with null, equals `want`.
fn requested(want: &[u8], call: &str, make: impl FnOnce(&Context)) {
    let context = context("collect_events-minimal");
    let (name, request) = first_call(&[0xf6], || make(&context));
    assert_eq!((name.as_str(), hex(&request)), (call, hex(want)));
}

fn path_of(name: &str) -> String {
    let bytes = vector(name);
    let mut decoder = Decoder::new(&bytes);
    decoder.array().unwrap();
    decoder.text().unwrap().to_owned()
}

#[test]
fn requests_of_reads() {
    let get = |name: &str, path: &str| request(name, |ctx| drop(ctx.get::<Value>(path)));
    get("state_get-root", "");
    get("state_get-path", "questions.0.answer");
    for name in ["state_get-segments-64", "state_get-path-4096"] {
        get(name, &path_of(name));
    }
    request("state_get-default", |ctx| drop(ctx.get_or("count", 0)));
    request("state_get-default-null", |ctx| {
        drop(ctx.get_or("count", Value::Null));
    });
}

#[test]
fn requests_of_edits() {
    let empty = Value::map::<&str>([]);
    request("state_edit-one", |ctx| drop(ctx.set("", &empty)));
    request("state_edit-increment-float", |ctx| {
        drop(ctx.increment_float("total", 0.5));
    });
    request("state_edit-list-indices", |ctx| {
        drop(
            ctx.batch()
                .set("results.-1", &())
                .delete("results.0")
                .commit(),
        );
    });
    request("state_edit-all-ops", |ctx| {
        drop(all_ops(ctx.batch()).commit())
    });
    request("state_begin-root", |ctx| {
        drop(ctx.edit_at("", |_: &mut Value| ()))
    });
    request("state_begin-path", |ctx| {
        drop(ctx.edit_at("players.3", |_: &mut Value| ()));
    });
}

fn all_ops(batch: Batch) -> Batch {
    let null = Value::map([("m", Value::map([("n", Value::Null)]))]);
    batch
        .set("a.b", &Value::map([("x", 1.into())]))
        .delete("a.c")
        .append("log", "line")
        .increment("count", -1)
        .merge("", &null)
        .test("a.b.x", &1)
        .clear()
}

/// The calls after the first, which opens an edit of the given value.
fn edit(value: &[u8], change: impl FnOnce(&mut Value) -> Result<()>) -> (String, Vec<u8>) {
    let context = context("collect_events-minimal");
    let host = Rc::new(Recorder {
        response: value.into(),
        ..Recorder::default()
    });
    native::with(host.clone(), || drop(context.try_edit_at("p", change)));
    host.calls.take().pop().expect("calls")
}

#[test]
fn ends_of_edits() {
    let (call, request) = edit(&[0xa0], |v| {
        *v = Value::map([("count", 2.into())]);
        Ok(())
    });
    assert_eq!(call, "state_commit");
    same("state_commit-map", &request);
    let (_, request) = edit(&[0x01], |v| {
        *v = Value::Null;
        Ok(())
    });
    same("state_commit-null", &request);
    let (call, request) = edit(&[0x01], |_| Err(Error::new("no", "no")));
    assert_eq!(call, "state_abort");
    same("state_abort-empty", &request);
}

#[test]
fn requests_of_events() {
    request("send_event-all", |ctx| drop(ctx.send(&milk())));
    request("send_event-step", |ctx| {
        drop(ctx.send_to("process_item", &milk()))
    });
    request("write_event_to_stream-one", |ctx| {
        drop(ctx.stream(&ProgressEvent { i: 0 }));
    });
    request("collect_events-minimal", |ctx| {
        drop(ctx.collect_n::<ItemEvent>(2))
    });
    request("collect_events-buffer", |ctx| {
        drop(ctx.collect_in::<(C, A, B)>("abc"))
    });
}

#[test]
fn requests_of_time_chance_and_log() {
    answered(&[0x01], "now-empty", |ctx| {
        let since = ctx.now().duration_since(SystemTime::UNIX_EPOCH);
        assert_eq!(since.unwrap().as_nanos(), 1);
    });
    request("random-max", |ctx| drop(ctx.random(4096)));
    request("random-zero", |ctx| drop(ctx.random(0)));
    request("log-debug", |ctx| ctx.debug("entering"));
    request("log-info", |ctx| ctx.info(""));
    request("log-warn-attrs", |ctx| {
        let attributes = [("step", "count".into()), ("seconds", 1.5.into())];
        ctx.log(Level::Warn, "slow", &attributes);
    });
}

/// The step of the vectors: records its input.
fn seen(encoder: &mut Encoder, ctx: &Context, step: &str, trigger: &[u8], config: bool) {
    let run = ctx.run();
    encoder.array(if config { 4 } else { 3 });
    encoder.text(step);
    encoder.raw(trigger);
    encoder.array(if run.last_error.is_some() { 8 } else { 7 });
    for text in [&run.tenant, &run.workflow, &run.run_id, &run.session_id] {
        encoder.text(text);
    }
    encoder.uint(run.invocation);
    encoder.uint(run.attempt);
    encoder.int(match run.started.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => after.as_nanos() as i64,
        Err(before) => -(before.duration().as_nanos() as i64),
    });
    if let Some(error) = &run.last_error {
        error.encode(encoder);
    }
    if config {
        encoder.value(&ctx.config::<Value>().unwrap()).unwrap();
    }
}

/// Reads a step's input, and encodes it again.
fn input<E: Input>(name: &str, again: impl FnOnce(E, &mut Encoder)) {
    let input = vector(name);
    let mut decoder = Decoder::new(&input);
    let items = decoder.array().unwrap();
    let step = decoder.text().unwrap();
    let trigger = decoder.offset();
    let event = E::read(&mut decoder).unwrap_or_else(|e| panic!("{name}: {e}"));
    let end = decoder.offset();
    let start = Start {
        decl: &DECL,
        steps: &[],
        input: input.clone(),
        trigger,
        given: Vec::new(),
    };
    let ctx = Context::new(Invocation::new(start, end));
    let mut events = Encoder::new();
    again(event, &mut events);
    let mut encoder = Encoder::new();
    seen(&mut encoder, &ctx, step, &events.into_bytes(), items > 3);
    same(name, &encoder.into_bytes());
}

/// Writes an event with the id of the vectors.
fn with_id<E: Event>(event: &E, id: u64, encoder: &mut Encoder) {
    encoder.array(3);
    encoder.text(E::TYPE.name());
    encoder.value(event).unwrap();
    encoder.uint(id);
}

#[test]
fn inputs() {
    input::<StartEvent>("step-input-one", |ev, out| with_id(&ev, 1, out));
    for name in ["clock-before-1970", "config", "config-empty", "retried"] {
        let name = format!("step-input-{name}");
        input::<ItemEvent>(&name, |ev, out| with_id(&ev, 1, out));
    }
    for name in ["list", "list-empty", "list-30"] {
        let name = format!("step-input-{name}");
        input::<Vec<ItemEvent>>(&name, |list, out| {
            out.array(list.len());
            for (i, event) in list.iter().enumerate() {
                with_id(event, i as u64 + 1, out);
            }
        });
    }
    let absent = vector("step-input-one");
    let mut decoder = Decoder::new(&absent);
    decoder.array().and_then(|_| decoder.text()).unwrap();
    let wrong = event::read::<ItemEvent>(&mut decoder).unwrap_err();
    assert!(
        wrong
            .to_string()
            .contains("an event StartEvent where ItemEvent is expected")
    );
}

#[test]
fn errors() {
    let data = Value::map([("attempt", 1.into())]);
    for (name, error) in [
        ("error-minimal", Error::new("flaky", "")),
        (
            "error-not-retryable",
            Error::new("invalid_message", "steps.0.name: is missing").not_retryable(),
        ),
        (
            "error-data-null",
            Error::new("internal", "no details").with_data(&()),
        ),
    ] {
        let mut encoder = Encoder::new();
        error.encode(&mut encoder);
        same(name, &encoder.into_bytes());
    }
    let full = vector("error-full");
    let read = Error::decode(&mut Decoder::new(&full)).unwrap();
    assert_eq!((read.retryable(), read.data()), (Some(true), Some(data)));
    let mut encoder = Encoder::new();
    read.encode(&mut encoder);
    same("error-full", &encoder.into_bytes());
}

/// Writes the output of a step.
fn output<T: Output>(name: &str, output: &T) {
    let mut encoder = Encoder::new();
    encoder.array(2);
    encoder.uint(0);
    output.write(&mut encoder).unwrap();
    same(name, &encoder.into_bytes());
}

#[test]
fn outputs() {
    output("step-output-nothing", &());
    output("step-output-nothing", &None::<Stop>);
    output("step-output-event", &Stop::new(42));
    output("step-output-event", &Some(Stop::new(42)));
    output("step-output-list-empty", &Vec::<ItemEvent>::new());
}

#[step]
fn start(_: &Context, _: ItemEvent) -> Result<()> {
    Err(Error::new("flaky", "asked to fail"))
}

workflow!("golden", steps = [start]);

#[test]
fn the_output_of_a_failure() {
    let host = Rc::new(Recorder {
        input: vector("step-input-config-empty"),
        ..Recorder::default()
    });
    let len = host.input.len() as u32;
    let status = native::with(host.clone(), || step_export(&WORKFLOW, len));
    assert_eq!(status, 1);
    same("step-output-error", &host.output.take());
}
