//! Steps that wait for an event: they are ended where they are, and run again from
//! their start when it comes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::rc::Rc;

use super::calls::Exchange;
use super::engine::{Event, Invocation, World};
use crate::cbor::Decoder;
use crate::error::{Error, Result, code};
use crate::value::{Raw, Value};

/// What ends a step that waits, wherever it is.
pub struct Suspended;

/// What an invocation waits for.
#[derive(Default)]
pub enum Pending {
    #[default]
    Nothing,
    /// A time.
    Until(i64),
    Event {
        /// Of the wait.
        id: String,
        due: Option<i64>,
        broadcast: bool,
        /// Of the type.
        name: String,
        matching: BTreeMap<String, Value>,
    },
    Child {
        /// That the step gave it.
        named: Option<String>,
        world: Rc<RefCell<World>>,
    },
}

/// A `wait_for_event`.
#[derive(crate::Data)]
struct Request {
    #[weft(name = "type")]
    name: String,
    #[weft(default)]
    requirements: BTreeMap<String, Value>,
    waiter_event: Option<(String, Raw)>,
    waiter_id: Option<String>,
    #[weft(default)]
    timeout: i64,
    #[weft(default)]
    broadcast: bool,
}

impl Exchange {
    /// Answers a `wait_for_event` from what has come, or ends the step.
    pub fn wait_for_event(&self, request: &mut Decoder) -> Result<Vec<u8>> {
        let request: Request = request.value()?;
        let id = self.id_of(&request);
        if let Some(event) = self.invocation.borrow().answered.get(&id) {
            return Ok(event.clone()); // in an attempt before
        }
        let mut world = self.world.borrow_mut();
        let step = self.invocation.borrow().step;
        let decl = &world.steps()[step];
        if !decl.waits().iter().any(|t| t.name() == request.name) {
            return Err(Error::new(
                code::FAILED_PRECONDITION,
                format_args!(
                    "step {} does not declare that it waits for {}",
                    decl.name, request.name
                ),
            ));
        }
        if let Some((name, body)) = &request.waiter_event {
            world.publish(name, body);
        }
        let now = world.place.root.borrow().clock;
        self.invocation.borrow_mut().pending = Pending::Event {
            id: id.clone(),
            due: (request.timeout > 0).then(|| now.saturating_add(request.timeout)),
            broadcast: request.broadcast,
            name: request.name,
            matching: request.requirements,
        };
        let kept = {
            let invocation = self.invocation.borrow();
            let mut kept = world.kept.iter();
            kept.position(|event| world.takes(&invocation, event))
        };
        match kept {
            Some(i) => {
                let event = world.kept.remove(i).encode();
                let mut invocation = self.invocation.borrow_mut();
                invocation.answered.insert(id, event.clone());
                Ok(event)
            }
            None => {
                drop(world);
                suspend()
            }
        }
    }

    /// Counts a wait that is answered from the record.
    pub fn count_wait(&self, request: &[u8]) {
        if let Ok(request) = Decoder::new(request).value() {
            self.id_of(&request);
        }
    }

    /// The name of a wait in its invocation: the given one with how many waits of that
    /// name came before, or one that counts those of the type.
    fn id_of(&self, request: &Request) -> String {
        let mut waits = self.waits.borrow_mut();
        let mut count = |key: String| {
            let n = waits.entry(key).or_insert(0);
            *n += 1;
            *n
        };
        match &request.waiter_id {
            None => format!("{} #{}", request.name, count(request.name.clone())),
            Some(id) => match count(format!("={id}")) {
                1 => id.clone(),
                n => format!("{id} ({n})"),
            },
        }
    }
}

/// Ends the step that runs; it must have said what it waits for.
pub fn suspend() -> ! {
    resume_unwind(Box::new(Suspended))
}

impl World {
    /// Whether an invocation waits for this event.
    fn takes(&self, invocation: &Invocation, event: &Event) -> bool {
        let Pending::Event { name, matching, .. } = &invocation.pending else {
            return false;
        };
        let decl = &self.steps()[invocation.step];
        let waits = decl.waits().iter().copied();
        let wanted: Vec<_> = waits.filter(|t| t.name() == name).collect();
        let body: Value = event.body.read().unwrap_or_default();
        self.is_one_of(&event.name, &wanted, decl)
            && matching.iter().all(|(key, v)| body.get(key) == Some(v))
    }

    /// Brings an event to the invocation that has waited for it the longest, and to
    /// all that asked for a broadcast.
    pub fn answer(&mut self, event: &Event) -> bool {
        let mut answered = false;
        let mut single = false;
        for waiter in std::mem::take(&mut self.waiters) {
            let all = matches!(
                &waiter.pending,
                Pending::Event {
                    broadcast: true,
                    ..
                }
            );
            if single && !all || !self.takes(&waiter, event) {
                self.waiters.push(waiter);
                continue;
            }
            single |= !all;
            answered = true;
            self.go_on(waiter, event);
        }
        answered
    }

    fn go_on(&mut self, mut waiter: Invocation, event: &Event) {
        let event = event.encode();
        if let Pending::Event { id, .. } = &waiter.pending {
            waiter.answered.insert(id.clone(), event.clone());
        }
        waiter.record.push((0, event));
        self.queue.push_back(waiter);
    }

    /// Whether a step waits for events of that name.
    pub fn is_waited_for(&self, name: &str) -> bool {
        let mut steps = self.steps().iter();
        steps.any(|d| self.is_one_of(name, d.waits(), d))
    }
}
