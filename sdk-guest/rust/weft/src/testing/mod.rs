//! A small host in memory, for tests of a plugin's steps in a native build. It runs a
//! workflow, one invocation after the other, and shows the result, the state, the stream
//! and the log.
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
//! [`Run::post`] answers a step that waits, and a sleep advances the clock. Functions
//! replace [resources](Session::resource) and [children](Session::child), and [values in
//! memory](Session::kv) replace resources of the kind `kv`. Failures are caught as on a
//! server.
//!
//! Sleeps and retries take no time: the test's clock advances by itself if nothing else
//! can happen. [`Run::advance`] advances it further, so that a wait times out, and
//! [`Run::cancel`] ends a run. The definition, external events and the state are checked
//! as on a server.
//!
//! The project's tests compare this host with the server, by shared scenes with a step's
//! calls, lists, waits, retries, children and failures. This host does not run steps
//! concurrently, so edits never conflict. It has no limits, fuel or durability. Because a
//! plugin's builds are for WebAssembly, name the machine's own target:
//!
//! ```text
//! cargo test --target x86_64-unknown-linux-gnu
//! ```
//!
//! The module must not depend on how steps are written, only on their declarations and
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
    /// If the workflow's declaration has an error, for which a server would refuse the
    /// upload.
    pub fn new(workflow: &'static Workflow) -> Self {
        definition::check(workflow);
        let place = Place::new(Rc::default(), workflow, None);
        Session { workflow, place }
    }

    /// Runs the workflow from its start event until it ends or waits for an external
    /// event. `start` is the event's body: the event itself, or any map; `()` means an
    /// empty body.
    ///
    /// # Errors
    ///
    /// The error of the step that failed, or the reason why the run could not begin.
    pub fn run<T: Serialize + ?Sized>(&self, start: &T) -> Result<Run> {
        let run = self.start(start)?;
        run.error().map_or(Ok(run), Err)
    }

    /// Runs the workflow as [`Session::run`] does, and returns the run even if it fails:
    /// [`Run::error`] is the reason, and the other methods show what happened before.
    ///
    /// # Errors
    ///
    /// The reason why the run could not begin.
    pub fn start<T: Serialize + ?Sized>(&self, start: &T) -> Result<Run> {
        enter::check_grants(self.workflow, &self.place)?;
        let start = body_of(start)?;
        self.begin(|world| world.start(start))
    }

    /// Sets a step's configuration, as the workflow's settings would.
    ///
    /// # Panics
    ///
    /// If the configuration cannot be encoded.
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

    /// Sets the time that steps see from now on, including steps of children.
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
    /// The attributes; null if there are none.
    pub attributes: Value,
}

impl Run {
    /// Sends an external event to the run, and continues the run.
    ///
    /// # Errors
    ///
    /// The run fails, does not take the event, or has ended.
    pub fn post<T: Serialize + ?Sized>(&self, name: &str, body: &T) -> Result<()> {
        self.world.borrow_mut().post(name, body_of(body)?)?;
        self.go_on()
    }

    /// Advances the time, for everything that the test's session has started: waits,
    /// steps and runs whose timeouts pass time out. By itself the clock advances only if
    /// nothing else can happen except the end of a sleep or a step's next attempt.
    ///
    /// # Errors
    ///
    /// The error of the run, if it fails.
    pub fn advance(&self, time: Duration) -> Result<()> {
        let root = self.world.borrow().place.root.clone();
        time::advance(&root, i64::try_from(time.as_nanos()).unwrap_or(i64::MAX));
        self.go_on()
    }

    /// Asks the run to end, as a client may. Steps that catch `cancelled` clean up.
    ///
    /// # Errors
    ///
    /// The error with which the run has ended, with the code `cancelled`.
    pub fn cancel(&self) -> Result<()> {
        let cause = Error::new("cancelled", "Workflow was cancelled");
        self.world.borrow_mut().clean_up(cause);
        self.go_on()
    }

    /// Runs everything that can happen, and returns the error of a failed run.
    fn go_on(&self) -> Result<()> {
        let root = self.world.borrow().place.root.clone();
        time::settle(&root);
        self.world.borrow().failed.clone().map_or(Ok(()), Err)
    }

    /// Why the run has failed, or that it was cancelled; `None` otherwise.
    pub fn error(&self) -> Option<Error> {
        self.world.borrow().failed.clone()
    }

    /// Whether the run has its result. Otherwise the run waits for an external event, or
    /// has failed.
    pub fn has_ended(&self) -> bool {
        self.world.borrow().stop.is_some()
    }

    /// The run's result: the result of the base stop event, or the whole body of any
    /// other stop event.
    ///
    /// # Panics
    ///
    /// If the run has not ended.
    pub fn result<T: DeserializeOwned>(&self) -> Result<T> {
        let world = self.world.borrow();
        let result = world.result().expect("the run waits for an event");
        result?.read()
    }

    /// What the run's steps wait for, oldest first: the names of their waits, and of
    /// their children or otherwise of the children's workflows.
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

    /// The runs of other workflows that steps started, in order, except children replaced
    /// by functions. Answer the wait of a child by the child's own [`Run::post`].
    pub fn children(&self) -> Vec<Run> {
        let world = self.world.borrow();
        let children = world.children.iter().cloned();
        children.map(|world| Run { world }).collect()
    }

    /// The session that the run belongs to. A child that does not share a session has its
    /// own.
    pub fn session(&self) -> Session {
        let world = self.world.borrow();
        Session {
            workflow: world.workflow,
            place: world.place.clone(),
        }
    }

    /// The events written to the stream, including questions to people.
    pub fn streamed(&self) -> Vec<Streamed> {
        self.world.borrow().streamed.clone()
    }

    /// Log records and printed lines.
    pub fn log(&self) -> Vec<Record> {
        self.world.borrow().log.clone()
    }
}

/// The body of an external event; `()` means an empty body.
fn body_of<T: Serialize + ?Sized>(body: &T) -> Result<Raw> {
    match Value::of(body)? {
        Value::Null => Raw::of(&Value::map::<&str>([])),
        body => Raw::of(&body),
    }
}
