//! A small host in memory, for tests of a plugin's steps in a native build: it
//! runs a workflow, one invocation after the other, and shows the result, the
//! state, the stream and the log.
//!
//! ```
//! use weft::prelude::*;
//! use weft::testing::Session;
//!
//! #[derive(StartEvent)]
//! struct StartEvent {
//!     name: String,
//! }
//!
//! #[step]
//! fn greet(_: &Context, ev: StartEvent) -> Result<Stop> {
//!     Ok(Stop::new(format!("Hello, {}!", ev.name)))
//! }
//!
//! workflow!("greet", steps = [greet]);
//!
//! # fn main() {
//! let run = Session::new(&WORKFLOW).run(&StartEvent { name: "Ada".into() }).unwrap();
//! assert_eq!(run.result::<String>().unwrap(), "Hello, Ada!");
//! # }
//! ```
//!
//! It is no second engine: steps never run side by side, nothing is retried,
//! timed, validated or durable, and schemas are not checked. What passes here
//! may still be refused by a host. As a plugin's builds are for WebAssembly,
//! name the machine's own target:
//!
//! ```text
//! cargo test --target x86_64-unknown-linux-gnu
//! ```
//!
//! The module must not know how steps are written, only their declarations and
//! the messages that they exchange with a host.

mod calls;
mod engine;
mod paths;
mod resource;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::SystemTime;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Result;
use crate::event::EventKind;
use crate::value::{Raw, Value};
use crate::workflow::Workflow;

use engine::World;

/// A session: the state that outlives its runs.
pub struct Session {
    workflow: &'static Workflow,
    shared: Rc<RefCell<Shared>>,
}

/// What the runs of a session share.
struct Shared {
    state: Value,
    initial: Value,
    /// In nanoseconds since 1970.
    clock: i64,
    chance: u64,
    runs: u32,
    resources: BTreeMap<String, resource::Answerer>,
}

impl Session {
    /// A new session of a workflow.
    ///
    /// # Panics
    ///
    /// If the workflow's declaration is at fault, as an upload would be refused.
    pub fn new(workflow: &'static Workflow) -> Self {
        let manifest = workflow.manifest().unwrap_or_else(|e| panic!("{e}"));
        let state = manifest.get("state").and_then(|s| s.get("default"));
        let state = state.cloned().unwrap_or_else(|| Value::map::<&str>([]));
        Session {
            workflow,
            shared: Rc::new(RefCell::new(Shared {
                initial: state.clone(),
                state,
                clock: 1_700_000_000_000_000_000,
                chance: 1,
                runs: 0,
                resources: BTreeMap::new(),
            })),
        }
    }

    /// Runs the workflow from its start event until it ends or waits for an
    /// event from outside. `start` is the event's body: the event itself, or
    /// any map; `()` is an empty one.
    ///
    /// # Errors
    ///
    /// That of the step that failed.
    pub fn run<T: Serialize + ?Sized>(&self, start: &T) -> Result<Run> {
        self.shared.borrow_mut().runs += 1;
        let run = Run {
            world: Rc::new(RefCell::new(World::new(self.workflow, self.shared.clone()))),
        };
        run.post(self.start_type(), start)?;
        Ok(run)
    }

    fn start_type(&self) -> &'static str {
        let mut taken = self.workflow.steps().iter().flat_map(|s| s.input.types);
        taken
            .find(|t| t.kind() == EventKind::Start)
            .map_or("StartEvent", |t| t.name())
    }

    /// The session's state.
    pub fn state(&self) -> Value {
        self.shared.borrow().state.clone()
    }

    /// Reads the value at a path of the session's state.
    pub fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        let shared = self.shared.borrow();
        paths::lookup(&shared.state, path)
            .ok_or_else(|| paths::nothing(path))?
            .read()
    }

    /// Sets the time that steps see from now on.
    pub fn set_clock(&self, time: SystemTime) {
        let since = time.duration_since(SystemTime::UNIX_EPOCH);
        let nanoseconds = match since {
            Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |n| -n),
        };
        self.shared.borrow_mut().clock = nanoseconds;
    }
}

/// One run of a workflow.
pub struct Run {
    world: Rc<RefCell<World>>,
}

/// An event of a run's stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Streamed {
    /// The name of the event's type.
    pub name: String,
    /// The event.
    pub body: Value,
}

/// A log record, or a printed line.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// -4 for debug, 0 for info and printed lines, 4 for warn, 8 for error.
    pub level: i64,
    /// The text.
    pub message: String,
    /// What came with it; null if nothing did.
    pub attributes: Value,
}

impl Run {
    /// Sends an event to the run from outside, and goes on with it.
    ///
    /// # Errors
    ///
    /// That of the step that failed.
    ///
    /// # Panics
    ///
    /// If the run has ended.
    pub fn post<T: Serialize + ?Sized>(&self, name: &str, body: &T) -> Result<()> {
        assert!(
            !self.has_ended(),
            "the run has ended: it takes no more events"
        );
        let body = match Value::of(body)? {
            Value::Null => Value::map::<&str>([]),
            body => body,
        };
        engine::post(&self.world, name, Raw::of(&body)?)
    }

    /// Whether the run has its result. One that has not waits for an event
    /// from outside.
    pub fn has_ended(&self) -> bool {
        self.world.borrow().result.is_some()
    }

    /// The run's result: that of the base stop event, or the whole of another.
    ///
    /// # Panics
    ///
    /// If the run has not ended.
    pub fn result<T: DeserializeOwned>(&self) -> Result<T> {
        let world = self.world.borrow();
        let result = world.result.as_ref().expect("the run waits for an event");
        result.read()
    }

    /// What was written to the stream, and asked of people.
    pub fn streamed(&self) -> Vec<Streamed> {
        self.world.borrow().streamed.clone()
    }

    /// What was logged and printed.
    pub fn log(&self) -> Vec<Record> {
        self.world.borrow().log.clone()
    }
}
