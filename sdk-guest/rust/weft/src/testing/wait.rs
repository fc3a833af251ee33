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
    Event {
        /// Of the wait.
        id: String,
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
}

impl Exchange {
    /// Answers a `wait_for_event` from what has come, or ends the step.
    pub fn wait_for_event(&self, request: &mut Decoder) -> Result<Vec<u8>> {
        let request: Request = request.value()?;
        let id = self.id_of(&request);
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
        self.invocation.borrow_mut().pending = Pending::Event {
            id,
            name: request.name,
            matching: request.requirements,
        };
        let kept = {
            let invocation = self.invocation.borrow();
            let mut kept = world.kept.iter();
            kept.position(|event| world.takes(&invocation, event))
        };
        match kept {
            Some(i) => Ok(world.kept.remove(i).encode()),
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

    /// The name of a wait: the given one, or one that counts.
    fn id_of(&self, request: &Request) -> String {
        if let Some(id) = &request.waiter_id {
            return id.clone();
        }
        let mut waits = self.waits.borrow_mut();
        let n = waits.entry(request.name.clone()).or_insert(0);
        *n += 1;
        format!("{} #{n}", request.name)
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

    /// Brings an event to the invocation that has waited for it the longest.
    pub fn answer(&mut self, event: &Event) -> bool {
        let mut waiters = self.waiters.iter();
        let Some(i) = waiters.position(|w| self.takes(w, event)) else {
            return false;
        };
        let mut waiter = self.waiters.remove(i);
        waiter.record.push((0, event.encode()));
        self.queue.push_back(waiter);
        true
    }

    /// Whether a step waits for events of that name.
    pub fn is_waited_for(&self, name: &str) -> bool {
        let mut steps = self.steps().iter();
        steps.any(|d| self.is_one_of(name, d.waits(), d))
    }
}
