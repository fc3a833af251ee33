//! Answers to the calls of one invocation.

use std::cell::RefCell;
use std::rc::Rc;

use serde::Serialize;

use super::engine::{self, List, World};
use super::{Record, paths};
use crate::boundary::Answer;
use crate::boundary::native::Host;
use crate::cbor::{self, Decoder, Encoder};
use crate::error::{Error, Result, code};
use crate::value::{Bytes, Raw, Value};

/// The calls that may be made while an edit is open.
const WITHIN_AN_EDIT: [&str; 6] = [
    "state_get",
    "state_commit",
    "state_abort",
    "log",
    "now",
    "random",
];

/// The host of one invocation.
pub struct Exchange {
    pub world: Rc<RefCell<World>>,
    step: usize,
    list: Option<Rc<List>>,
    input: Vec<u8>,
    output: RefCell<Vec<Vec<u8>>>,
    /// The path of the open edit.
    open: RefCell<Option<String>>,
}

impl Exchange {
    pub fn new(
        world: Rc<RefCell<World>>,
        step: usize,
        list: Option<Rc<List>>,
        input: Vec<u8>,
    ) -> Self {
        Exchange {
            world,
            step,
            list,
            input,
            output: RefCell::default(),
            open: RefCell::default(),
        }
    }

    /// What the guest handed over.
    pub fn output(&self) -> Vec<u8> {
        let outputs = self.output.take();
        assert_eq!(outputs.len(), 1, "a guest hands over one output");
        outputs.concat()
    }

    fn answer(&self, name: &str, request: &mut Decoder) -> Result<Vec<u8>> {
        if self.open.borrow().is_some() && !WITHIN_AN_EDIT.contains(&name) {
            return Err(Error::new(
                code::FAILED_PRECONDITION,
                format_args!("{name} may not be called within an edit"),
            ));
        }
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
                self.world.borrow_mut().publish(&name, &body);
                encode(&())
            }
            "call_resource" => encode(&self.call_resource(request)?),
            "now" => encode(&self.world.borrow().shared.borrow().clock),
            "random" => {
                let n = request.value()?;
                let world = self.world.borrow();
                let bytes = world.shared.borrow_mut().random(n);
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
        let shared = world.shared.borrow();
        match (paths::lookup(&shared.state, path), other) {
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
        let results = world.shared.borrow_mut().edit(&edits)?;
        encode(&results)
    }

    fn begin(&self, request: &mut Decoder) -> Result<Vec<u8>> {
        let path = request.text()?;
        let world = self.world.borrow();
        let shared = world.shared.borrow();
        let value = paths::lookup(&shared.state, path).ok_or_else(|| paths::nothing(path))?;
        self.open.replace(Some(path.to_owned()));
        encode(value)
    }

    /// Ends the open edit: with a value, or as if it had not been.
    fn end(&self, n: usize, request: &mut Decoder) -> Result<Vec<u8>> {
        let Some(path) = self.open.take() else {
            return Err(Error::new(code::FAILED_PRECONDITION, "no edit is open"));
        };
        if n > 0 {
            let value = request.value()?;
            let world = self.world.borrow();
            world
                .shared
                .borrow_mut()
                .edit(&[("set".into(), path, value)])?;
        }
        encode(&())
    }

    fn send(&self, n: usize, request: &mut Decoder) -> Result<Vec<u8>> {
        let (name, body) = engine::event(request)?;
        let mut world = self.world.borrow_mut();
        if n < 2 {
            world.emit(&name, body, self.list.clone());
            return encode(&());
        }
        let to = request.text()?;
        let Some((i, decl)) = world
            .accepting(&name)
            .into_iter()
            .find(|(_, d)| d.name == to)
        else {
            return Err(Error::new(
                code::NOT_FOUND,
                format_args!("no step {to} accepts {name}"),
            ));
        };
        let event = world.event(&name, body, self.list.clone());
        world.deliver(i, decl, event);
        encode(&())
    }

    /// Adds the event to a buffer; gives a complete set if there is one.
    fn collect(&self, n: usize, request: &mut Decoder) -> Result<Vec<u8>> {
        let whole: Raw = request.value()?;
        let (name, _) = engine::event(&mut Decoder::new(whole.bytes()))?;
        let expected: Vec<String> = request.value()?;
        let buffer = if n > 2 { request.text()? } else { "" };
        let mut world = self.world.borrow_mut();
        let key = (self.step, buffer.to_owned());
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

/// The number of an error code.
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
        match self.answer(name, &mut Decoder::new(request)) {
            Ok(response) => (0, response),
            Err(error) => {
                let mut encoder = Encoder::new();
                error.encode(&mut encoder);
                (status(error.code()), encoder.into_bytes())
            }
        }
    }

    fn input(&self) -> Vec<u8> {
        self.input.clone()
    }

    fn output(&self, output: &[u8]) {
        self.output.borrow_mut().push(output.to_vec());
    }

    fn print(&self, line: &str) {
        self.world.borrow_mut().log.push(Record {
            level: 0,
            message: line.to_owned(),
            attributes: Value::Null,
        });
    }
}
