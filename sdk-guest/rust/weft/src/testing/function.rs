//! Calls of functions by a test, in place of a flow.

use std::cell::RefCell;
use std::rc::Rc;

use serde::Serialize;

use super::engine::World;
use super::{Run, Session, body_of};
use crate::error::{Error, Result, code};
use crate::step::StepDecl;
use crate::value::{Raw, Value};

const INPUT: &str = "StepInput";
const OUTPUT: &str = "StepOutput";

impl Session {
    /// Calls one function of the plugin (`#[function]`) as a flow does, with a
    /// [`StepInput`](crate::StepInput) or a map of its fields; `()` means no fields. The
    /// run's result is the content of the output, and [`Run::output`] the whole output.
    /// Other steps of the plugin process the events that the function sends them.
    ///
    /// ```
    /// use weft::prelude::*;
    /// use weft::testing::Session;
    ///
    /// #[function]
    /// fn shout(_: &Context, input: StepInput) -> Result<StepOutput> {
    ///     Ok(StepOutput::content(input.text().to_uppercase()))
    /// }
    ///
    /// workflow!("functions", part, steps = [shout]);
    ///
    /// # fn main() {
    /// let input = Value::map([("input", "milk".into())]);
    /// let run = Session::new(&WORKFLOW).function("shout", &input).unwrap();
    /// assert_eq!(run.result::<String>().unwrap(), "MILK");
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The error of the function, or that the function does not exist.
    pub fn function<T: Serialize + ?Sized>(&self, name: &str, input: &T) -> Result<Run> {
        let functions = || self.workflow.steps().iter().filter(|d| is_function(d));
        if !functions().any(|d| d.name == name) {
            let names: Vec<&str> = functions().map(|d| d.name).collect();
            let message = match names.len() {
                0 => "the plugin has no functions that flows can call: put #[function] on some, and them into steps".to_owned(),
                _ => format!("the plugin has no function {name}: it has {}", names.join(", ")),
            };
            return Err(Error::new(code::NOT_FOUND, message));
        }
        let run = self.begin(|world| {
            world.call(name, body_of(input)?);
            Ok(())
        })?;
        run.error().map_or(Ok(run), Err)
    }
}

impl Run {
    /// The output of the function that the test called.
    ///
    /// # Panics
    ///
    /// If the function has returned no output.
    pub fn output(&self) -> Value {
        let world = self.world.borrow();
        world.output.clone().expect("the function has no output")
    }
}

fn is_function(decl: &StepDecl) -> bool {
    matches!(decl.input.types, [one] if one.name() == INPUT)
}

impl World {
    /// Passes an input to one function.
    fn call(&mut self, name: &str, input: Raw) {
        let steps = self.steps();
        let found = steps.iter().enumerate().find(|(_, d)| d.name == name);
        if let Some((i, decl)) = found {
            let event = self.event(INPUT, input, None, Default::default());
            self.deliver(i, decl, event);
        }
    }

    /// Ends the run with an output, if the event is one.
    pub fn is_answered(&mut self, name: &str, body: &Raw) -> bool {
        if name != OUTPUT || !self.workflow.is_part() {
            return false;
        }
        let output: Value = body.read().unwrap_or_default();
        let content = output.get("content").cloned().unwrap_or_default();
        let stop = Value::map([("result", content)]);
        self.stop = Some(("StopEvent".to_owned(), Raw::of(&stop).unwrap_or_default()));
        self.output = Some(output);
        true
    }
}

impl Session {
    /// Begins a run by calling `enter`, and continues it as far as possible.
    pub(super) fn begin(&self, enter: impl FnOnce(&mut World) -> Result<()>) -> Result<Run> {
        let world = World::new(self.workflow, self.place.clone());
        let world = Rc::new(RefCell::new(world));
        let mut root = self.place.root.borrow_mut();
        root.worlds.push(Rc::downgrade(&world));
        drop(root);
        enter(&mut world.borrow_mut())?;
        let run = Run { world };
        let _ = run.go_on(); // the run keeps its error
        Ok(run)
    }
}
