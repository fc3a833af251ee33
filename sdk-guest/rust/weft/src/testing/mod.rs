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
//! A step that waits is answered by [`Run::post`], a sleep sets the clock forward,
//! functions stand for [resources](Session::resource) and
//! [children](Session::child), [values in memory](Session::kv) for those of the kind
//! `kv`, and failures are caught.
//!
//! Sleeps and retries take no time: the clock of the test goes on by itself where
//! nothing else can happen. [`Run::advance`] lets more of it pass, for a wait that is
//! to time out, and [`Run::cancel`] ends a run. The definition, events from outside and
//! the state are checked as a server does.
//!
//! What the shared scenes of the project play (a step's calls, lists, waits, retries,
//! children, failures), comes out here as on a server, which the project's tests hold
//! it to. What is not here: steps that run side by side, so that edits never meet;
//! limits, fuel and durability. As a plugin's builds are for WebAssembly, name the
//! machine's own target:
//!
//! ```text
//! cargo test --target x86_64-unknown-linux-gnu
//! ```
//!
//! The module must not know how steps are written, only their declarations and
//! the messages that they exchange with a host.

mod calls;
mod child;
mod definition;
mod engine;
mod enter;
mod function;
mod kv;
mod life;
mod lists;
mod paths;
mod place;
mod resource;
mod retry;
mod schema;
mod time;
mod wait;

pub use kv::Values;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::value::{Raw, Value};
use crate::workflow::Workflow;

use engine::World;
use place::Place;
use wait::Pending;

/// A session: the state that outlives its runs.
pub struct Session {
    workflow: &'static Workflow,
    place: Place,
}

impl Session {
    /// A new session of a workflow.
    ///
    /// # Panics
    ///
    /// If the workflow's declaration is at fault, as an upload would be refused.
    pub fn new(workflow: &'static Workflow) -> Self {
        definition::check(workflow);
        let place = Place::new(Rc::default(), workflow, None);
        Session { workflow, place }
    }

    /// Runs the workflow from its start event until it ends or waits for an
    /// event from outside. `start` is the event's body: the event itself, or
    /// any map; `()` is an empty one.
    ///
    /// # Errors
    ///
    /// That of the step that failed, or why the run could not begin.
    pub fn run<T: Serialize + ?Sized>(&self, start: &T) -> Result<Run> {
        let run = self.start(start)?;
        run.error().map_or(Ok(run), Err)
    }

    /// Runs the workflow as [`Session::run`] does, and gives the run even if it fails:
    /// [`Run::error`] says why, and the rest what it did before.
    ///
    /// # Errors
    ///
    /// Why it could not begin.
    pub fn start<T: Serialize + ?Sized>(&self, start: &T) -> Result<Run> {
        enter::check_grants(self.workflow, &self.place)?;
        let start = body_of(start)?;
        self.begin(|world| world.start(start))
    }

    /// Gives a step its configuration, as the workflow's settings would have it.
    ///
    /// # Panics
    ///
    /// If it is not data.
    #[must_use]
    pub fn configure<T: Serialize + ?Sized>(self, step: &str, config: &T) -> Self {
        let config = Raw::of(config).unwrap_or_else(|e| panic!("{e}"));
        let mut root = self.place.root.borrow_mut();
        root.config.insert(step.to_owned(), config);
        drop(root);
        self
    }

    /// The session's state.
    pub fn state(&self) -> Value {
        self.place.state.borrow().clone()
    }

    /// Reads the value at a path of the session's state.
    pub fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        let state = self.place.state.borrow();
        paths::lookup(&state, path)
            .ok_or_else(|| paths::nothing(path))?
            .read()
    }

    /// Sets the time that steps see from now on, those of children too.
    pub fn set_clock(&self, time: SystemTime) {
        let since = time.duration_since(SystemTime::UNIX_EPOCH);
        let nanoseconds = match since {
            Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |n| -n),
        };
        self.place.root.borrow_mut().clock = nanoseconds;
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
    /// The run fails, does not take the event, or has ended.
    pub fn post<T: Serialize + ?Sized>(&self, name: &str, body: &T) -> Result<()> {
        self.world.borrow_mut().post(name, body_of(body)?)?;
        self.go_on()
    }

    /// Lets time pass, for all that the test's session has led to: waits, steps and
    /// runs time out on the way when theirs is over. By itself the clock goes on only
    /// where nothing else can happen but the end of a sleep or a step's next attempt.
    ///
    /// # Errors
    ///
    /// That for which the run fails.
    pub fn advance(&self, time: Duration) -> Result<()> {
        let root = self.world.borrow().place.root.clone();
        time::advance(&root, i64::try_from(time.as_nanos()).unwrap_or(i64::MAX));
        self.go_on()
    }

    /// Asks the run to end, as a client may. Steps that catch `cancelled` clean up.
    ///
    /// # Errors
    ///
    /// That for which the run has ended: one with the code `cancelled`.
    pub fn cancel(&self) -> Result<()> {
        let cause = Error::new("cancelled", "Workflow was cancelled");
        self.world.borrow_mut().clean_up(cause);
        self.go_on()
    }

    /// Lets all happen that can, and gives the error for which the run has failed.
    fn go_on(&self) -> Result<()> {
        let root = self.world.borrow().place.root.clone();
        time::settle(&root);
        self.world.borrow().failed.clone().map_or(Ok(()), Err)
    }

    /// Why the run has failed, or that it was cancelled; none if it has not.
    pub fn error(&self) -> Option<Error> {
        self.world.borrow().failed.clone()
    }

    /// Whether the run has its result. One that has not waits for an event
    /// from outside, or has failed.
    pub fn has_ended(&self) -> bool {
        self.world.borrow().stop.is_some()
    }

    /// The run's result: that of the base stop event, or the whole of another.
    ///
    /// # Panics
    ///
    /// If the run has not ended.
    pub fn result<T: DeserializeOwned>(&self) -> Result<T> {
        let world = self.world.borrow();
        let result = world.result().expect("the run waits for an event");
        result?.read()
    }

    /// What the run's steps wait for, oldest first: the names of their waits, and
    /// of their children or else of the workflows that these run.
    pub fn waiting(&self) -> Vec<String> {
        let world = self.world.borrow();
        let names = world.waiters.iter().map(|w| match &w.pending {
            Pending::Event { id, .. } => id.clone(),
            Pending::Child {
                named: Some(name), ..
            } => name.clone(),
            Pending::Child { world, .. } => world.borrow().workflow.name().to_owned(),
            Pending::Until(_) | Pending::Nothing => String::new(),
        });
        names.filter(|name| !name.is_empty()).collect()
    }

    /// The runs that steps began of other workflows, in their order, without those
    /// for which a function stands. One that waits is answered by its own
    /// [`Run::post`].
    pub fn children(&self) -> Vec<Run> {
        let world = self.world.borrow();
        let children = world.children.iter().cloned();
        children.map(|world| Run { world }).collect()
    }

    /// The session that the run belongs to: for a child that shares none, one of
    /// its own.
    pub fn session(&self) -> Session {
        let world = self.world.borrow();
        Session {
            workflow: world.workflow,
            place: world.place.clone(),
        }
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

/// The body of an event from outside: `()` is an empty one.
fn body_of<T: Serialize + ?Sized>(body: &T) -> Result<Raw> {
    match Value::of(body)? {
        Value::Null => Raw::of(&Value::map::<&str>([])),
        body => Raw::of(&body),
    }
}
