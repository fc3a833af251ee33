//! Answers to the calls of one invocation.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use serde::Serialize;

use super::engine::{self, Invocation, World};
use super::wait::{Pending, suspend};
use super::{Record, paths};
use crate::boundary::Answer;
use crate::boundary::native::Host;
use crate::cbor::{self, Decoder, Encoder};
use crate::error::{Error, Result, code};
use crate::value::{Bytes, Raw, Value};

/// The calls that are allowed while an edit is open.
const WITHIN_AN_EDIT: [&str; 6] = [
    "state_get",
    "state_commit",
    "state_abort",
    "log",
    "now",
    "random",
];

/// The largest number of random bytes of a call.
const MOST_RANDOM: usize = 4096;

/// The host of one invocation.
pub struct Exchange {
    pub world: Rc<RefCell<World>>,
    pub invocation: RefCell<Invocation>,
    /// How often the invocation has waited for each type without naming the wait.
    pub waits: RefCell<BTreeMap<String, u32>>,
    input: Vec<u8>,
    output: RefCell<Vec<Vec<u8>>>,
    /// The path of the open edit.
    open: RefCell<Option<String>>,
    /// The number of calls and of printed lines.
    made: Cell<usize>,
    printed: Cell<usize>,
    /// For an atomic step.
    staged: Option<Staged>,
}

/// The effects of an atomic step, which become visible when it has succeeded.
struct Staged {
    /// The state before.
    state: Value,
    effects: RefCell<Vec<Effect>>,
}

type Effect = Box<dyn FnOnce(&mut World)>;

/// The calls that an atomic step may not make.
const NOT_ATOMIC: [&str; 5] = [
    "wait_for_event",
    "sleep",
    "run_workflow",
    "call_resource",
    "collect_events",
];

impl Exchange {
    pub fn new(world: Rc<RefCell<World>>, invocation: Invocation, input: Vec<u8>) -> Self {
        let staged = {
            let world = world.borrow();
            let extras = world.steps()[invocation.step].extras;
            extras.is_some_and(|e| e.atomic).then(|| Staged {
                state: world.place.state.borrow().clone(),
                effects: RefCell::default(),
            })
        };
        Exchange {
            world,
            invocation: RefCell::new(invocation),
            waits: RefCell::default(),
            input,
            output: RefCell::default(),
            open: RefCell::default(),
            made: Cell::default(),
            printed: Cell::default(),
            staged,
        }
    }

    /// Applies an effect: at once, or when the atomic step succeeds.
    fn effect(&self, effect: impl FnOnce(&mut World) + 'static) {
        match &self.staged {
            Some(staged) => staged.effects.borrow_mut().push(Box::new(effect)),
            None => effect(&mut self.world.borrow_mut()),
        }
    }

    /// Applies the effects of an atomic step, or discards them.
    pub fn settle(&self, succeeded: bool) {
        let Some(staged) = &self.staged else { return };
        let mut world = self.world.borrow_mut();
        if succeeded {
            for effect in staged.effects.take() {
                effect(&mut world);
            }
        } else {
            world.place.state.replace(staged.state.clone());
        }
    }

    /// The recorded answer to a call that was made before the step waited.
    fn replay(&self, name: &str, request: &[u8]) -> Option<Answer> {
        let made = self.made.get();
        self.made.set(made + 1);
        let answer = self.invocation.borrow().record.get(made).cloned()?;
        if name == "wait_for_event" {
            self.count_wait(request);
        }
        Some(answer)
    }

    /// Whether a call is allowed now.
    fn check(&self, name: &str) -> Result<()> {
        let within = self.open.borrow().is_some() && !WITHIN_AN_EDIT.contains(&name);
        let place = match &self.staged {
            _ if within => "within an edit",
            Some(_) if NOT_ATOMIC.contains(&name) => "in an atomic step",
            _ => return Ok(()),
        };
        Err(Error::new(
            code::FAILED_PRECONDITION,
            format_args!("{name} may not be called {place}"),
        ))
    }

    /// Answers a new call.
    fn live(&self, name: &str, request: &mut Decoder) -> Answer {
        if let Err(refused) = self.check(name) {
            return answer_of(Err(refused));
        }
        match name {
            "wait_for_event" => answer_of(self.wait_for_event(request)),
            "run_workflow" => self.run_workflow(request),
            _ => answer_of(self.answer(name, request)),
        }
    }

    /// The output of the guest.
    pub fn output(&self) -> Vec<u8> {
        let outputs = self.output.take();
        assert_eq!(outputs.len(), 1, "a guest hands over one output");
        outputs.concat()
    }

    fn answer(&self, name: &str, request: &mut Decoder) -> Result<Vec<u8>> {
        let n = request.array()?;
        match name {
            "state_get" => self.get(n, request),
            "state_edit" => self.edit(n, request),
            "state_begin" => self.begin(request),
            "state_commit" | "state_abort" => self.end(n, request),
            "send_event" => self.send(n, request),
            "collect_events" => self.collect(n, request),
            "write_event_to_stream" => {
                let (name, body) = engine::event(request)?;
                self.effect(move |world| world.publish(&name, &body));
                encode(&())
            }
            "call_resource" => encode(&self.call_resource(request)?),
            "sleep" => {
                let time: i64 = request.value()?;
                let now = self.world.borrow().place.root.borrow().clock;
                let until = now.saturating_add(time);
                self.invocation.borrow_mut().pending = Pending::Until(until);
                suspend()
            }
            "now" => encode(&self.world.borrow().place.root.borrow().clock),
            "random" => {
                let n = request.value()?;
                if n > MOST_RANDOM {
                    return Err(Error::misuse(format_args!(
                        "n: must be 0 to {MOST_RANDOM}, not {n}"
                    )));
                }
                let world = self.world.borrow();
                let bytes = world.place.root.borrow_mut().random(n);
                encode(&Bytes(bytes))
            }
            "log" => self.log(n, request),
            _ => Err(Error::new(
                code::UNAVAILABLE,
                format_args!("this host does not serve {name}"),
            )),
        }
    }

    fn get(&self, n: usize, request: &mut Decoder) -> Result<Vec<u8>> {
        let path = request.text()?;
        let other: Option<Raw> = if n > 1 { Some(request.value()?) } else { None };
        let world = self.world.borrow();
        let state = world.place.state.borrow();
        match (paths::lookup(&state, path), other) {
            (Some(value), _) => encode(value),
            (None, Some(other)) => encode(&other),
            (None, None) => Err(paths::nothing(path)),
        }
    }

    fn edit(&self, n: usize, request: &mut Decoder) -> Result<Vec<u8>> {
        let mut edits = Vec::new();
        for _ in 0..n {
            let parts = request.array()?;
            let op = request.text()?.to_owned();
            let path = if parts > 1 { request.text()? } else { "" }.to_owned();
            let value = if parts > 2 {
                request.value()?
            } else {
                Value::Null
            };
            edits.push((op, path, value));
        }
        let world = self.world.borrow();
        let results = world.place.edit(&edits)?;
        encode(&results)
    }

    fn begin(&self, request: &mut Decoder) -> Result<Vec<u8>> {
        let path = request.text()?;
        let world = self.world.borrow();
        let state = world.place.state.borrow();
        let value = paths::lookup(&state, path).ok_or_else(|| paths::nothing(path))?;
        self.open.replace(Some(path.to_owned()));
        encode(value)
    }

    /// Ends the open edit: with a value, or without a change.
    fn end(&self, n: usize, request: &mut Decoder) -> Result<Vec<u8>> {
        let Some(path) = self.open.take() else {
            return Err(Error::new(code::FAILED_PRECONDITION, "no edit is open"));
        };
        if n > 0 {
            let value = request.value()?;
            let world = self.world.borrow();
            world.place.edit(&[("set".into(), path, value)])?;
        }
        encode(&())
    }

    fn send(&self, n: usize, request: &mut Decoder) -> Result<Vec<u8>> {
        let (name, body) = engine::event(request)?;
        let list = self.invocation.borrow().list.clone();
        let lineage = self.invocation.borrow().lineage.clone();
        if n < 2 {
            self.effect(move |world| world.emit(&name, body, list, lineage));
            return encode(&());
        }
        let to = request.text()?;
        let accepting = self.world.borrow().accepting(&name);
        let Some((i, decl)) = accepting.into_iter().find(|(_, d)| d.name == to) else {
            return Err(Error::new(
                code::NOT_FOUND,
                format_args!("no step {to} accepts {name}"),
            ));
        };
        self.effect(move |world| {
            let event = world.event(&name, body, list, lineage);
            world.deliver(i, decl, event);
        });
        encode(&())
    }

    /// Adds the event to a buffer, and returns a complete set if there is one.
    fn collect(&self, n: usize, request: &mut Decoder) -> Result<Vec<u8>> {
        let whole: Raw = request.value()?;
        let (name, _) = engine::event(&mut Decoder::new(whole.bytes()))?;
        let expected: Vec<String> = request.value()?;
        let buffer = if n > 2 { request.text()? } else { "" };
        let mut world = self.world.borrow_mut();
        let key = (self.invocation.borrow().step, buffer.to_owned());
        let kept = world.buffers.entry(key).or_default();
        kept.push((name, whole));
        let mut rest = kept.clone();
        let mut set = Vec::new();
        for name in &expected {
            match rest.iter().position(|(n, _)| n == name) {
                Some(i) => set.push(rest.remove(i).1),
                None => return encode(&()),
            }
        }
        *kept = rest;
        encode(&set)
    }

    fn log(&self, n: usize, request: &mut Decoder) -> Result<Vec<u8>> {
        let record = Record {
            level: request.value()?,
            message: request.text()?.to_owned(),
            attributes: if n > 2 { request.value()? } else { Value::Null },
        };
        self.world.borrow_mut().log.push(record);
        encode(&())
    }
}

fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>> {
    cbor::to_vec(value).map_err(Error::misuse)
}

/// The answer to a call that returned a response or failed.
pub fn answer_of(outcome: Result<Vec<u8>>) -> Answer {
    match outcome {
        Ok(response) => (0, response),
        Err(error) => {
            let mut encoder = Encoder::new();
            error.encode(&mut encoder);
            (status(error.code()), encoder.into_bytes())
        }
    }
}

/// The status of an error code.
fn status(code: &str) -> u32 {
    let codes = [
        code::INVALID_MESSAGE,
        code::NOT_FOUND,
        code::CONFLICT,
        code::FAILED_PRECONDITION,
        code::PERMISSION_DENIED,
        code::LIMIT_EXCEEDED,
        code::TIMEOUT,
        code::SCHEMA_VIOLATION,
        code::UNAVAILABLE,
    ];
    let place = codes.iter().position(|c| *c == code);
    place.unwrap_or(codes.len()) as u32 + 1
}

impl Host for Exchange {
    fn call(&self, name: &str, request: &[u8]) -> Answer {
        if let Some(answer) = self.replay(name, request) {
            return answer;
        }
        let answer = self.live(name, &mut Decoder::new(request));
        self.invocation.borrow_mut().record.push(answer.clone());
        answer
    }

    fn input(&self) -> Vec<u8> {
        self.input.clone()
    }

    fn output(&self, output: &[u8]) {
        self.output.borrow_mut().push(output.to_vec());
    }

    fn print(&self, line: &str) {
        let n = self.printed.get() + 1;
        self.printed.set(n);
        let mut invocation = self.invocation.borrow_mut();
        if n <= invocation.printed {
            return; // before it waited
        }
        invocation.printed = n;
        self.world.borrow_mut().log.push(Record {
            level: 0,
            message: line.to_owned(),
            attributes: Value::Null,
        });
    }
}
