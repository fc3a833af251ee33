//! Failures of other steps, for steps that catch them.

use crate::event::{Event, EventKind, EventType, event_type};
use crate::step::InputDecl;
use crate::value::Value;

/// The event that a catching step receives: another step has failed finally, or the run
/// was cancelled or timed out.
///
/// ```
/// use weft::prelude::*;
/// # #[derive(StartEvent)] struct StartEvent { fail: bool }
///
/// #[step]
/// fn work(_: &Context, ev: StartEvent) -> Result<Stop> {
///     Err(Error::new("asked", "asked to fail"))
/// }
///
/// #[step(catches = [work])]
/// fn rescue(_: &Context, ev: StepFailed) -> Result<Stop> {
///     Ok(Stop::new(ev.exception.exception_message))
/// }
///
/// workflow!("rescue", steps = [work, rescue]);
/// # fn main() {
/// let run = weft::testing::Session::new(&WORKFLOW).run(&StartEvent { fail: true }).unwrap();
/// assert_eq!(run.result::<String>().unwrap(), "asked to fail");
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, crate::Data)]
pub struct StepFailed {
    /// The step that failed; empty if the run itself ended.
    pub step_name: String,
    /// The error.
    pub exception: Exception,
    /// The number of attempts.
    pub attempts: u64,
    /// The seconds since the first attempt began.
    pub elapsed_seconds: f64,
    /// The event that the failed step received, as `{"type", "value"}`, or a list of such
    /// events. `None` if it is too large, or if the run itself ended.
    pub input_event: Option<Value>,
}

/// The error of a step that failed.
#[derive(Clone, Debug, PartialEq, crate::Data)]
pub struct Exception {
    /// Its code.
    pub exception_type: String,
    /// Its message.
    pub exception_message: String,
}

const NAME: &str = "StepFailedEvent";

impl Event for StepFailed {
    const TYPE: &'static EventType = &event_type::<StepFailed>(NAME, EventKind::Plain, "").known();
}

/// The failures that a step catches.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum Catches {
    Nothing,
    All,
    Steps(&'static [&'static str]),
}

impl Catches {
    /// The failures of some steps, caught by a step with this input.
    pub const fn steps(names: &'static [&'static str], input: InputDecl) -> Self {
        Self::check(&input);
        assert!(
            !names.is_empty(),
            "name the steps whose failures it catches, or write `catches = all`"
        );
        Catches::Steps(names)
    }

    /// The failures of all other steps, caught by a step with this input.
    pub const fn all(input: InputDecl) -> Self {
        Self::check(&input);
        Catches::All
    }

    const fn check(input: &InputDecl) {
        let mut i = 0;
        while i < input.types.len() && !same(input.types[i].name(), NAME) {
            i += 1;
        }
        assert!(
            i < input.types.len(),
            "a step that catches failures takes a StepFailed: `fn rescue(ctx: &Context, ev: StepFailed)`"
        );
    }
}

/// Whether two texts are equal, at compile time.
const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}
