//! Child workflows of a step.

use std::any::type_name;
use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::boundary;
use crate::cbor::{self, Decoder, Encoder};
use crate::context::{Context, check};
use crate::error::{Error, Result};

impl<S> Context<S> {
    /// Runs another workflow, or this one, as a child run. The step waits for its result
    /// as it does for an event.
    ///
    /// ```
    /// # use weft::prelude::*;
    /// #[derive(StartEvent)]
    /// struct StartEvent { items: Vec<String> }
    ///
    /// #[step]
    /// fn halves(ctx: &Context, ev: StartEvent) -> Result<Stop> {
    ///     let lengths = ctx
    ///         .run_workflow("accumulator", &ev)
    ///         .named("first half")
    ///         .same_session()
    ///         .result::<Vec<usize>>()?;
    ///     Ok(Stop::new(lengths))
    /// }
    /// ```
    ///
    /// The settings in between are optional. `start` is the child's start event: a struct
    /// or a map with the fields of the start event that the child's workflow has; `()`
    /// means no fields.
    pub fn run_workflow<'a>(
        &'a self,
        workflow: &'a str,
        start: &(impl Serialize + ?Sized),
    ) -> Child<'a> {
        Child {
            workflow,
            start: fields(cbor::to_vec(start)),
            id: "",
            shared: false,
            session: "",
            stream: false,
        }
    }
}

/// A child, before it runs; see [`Context::run_workflow`].
#[must_use = "a child begins with .result()"]
pub struct Child<'a> {
    workflow: &'a str,
    /// The fields of the start event, or an error in one of the settings.
    start: Result<Vec<u8>, String>,
    id: &'a str,
    shared: bool,
    session: &'a str,
    stream: bool,
}

/// The fields of a start event.
fn fields(encoded: Result<Vec<u8>, cbor::Error>) -> Result<Vec<u8>, String> {
    let encoded = encoded.map_err(|e| e.to_string())?;
    let mut decoder = Decoder::new(&encoded);
    if decoder.null() {
        return Ok(vec![0xa0]);
    }
    if decoder.map().is_err() {
        return Err("what starts a workflow is a struct or a map".into());
    }
    Ok(encoded)
}

impl<'a> Child<'a> {
    /// Names the child among the children that the step starts for one event. When the
    /// step is retried, a child with the same name does not run again, but returns its
    /// result. Without a name, a child belongs to the attempt.
    pub fn named(mut self, name: &'a str) -> Self {
        if name.is_empty() || name.len() > 128 {
            self.start = Err("a child's name has 1 to 128 bytes".into());
        }
        self.id = name;
        self
    }

    /// Makes the child use this session's state. Without it the child has a separate
    /// session.
    pub fn same_session(mut self) -> Self {
        self.shared = true;
        self.one_session()
    }

    /// Makes the child use the state of the session with the given id. The session is
    /// created if it does not exist.
    pub fn in_session(mut self, id: &'a str) -> Self {
        if id.is_empty() {
            self.start =
                Err("a session's id is not empty: leave in_session out for a new one".into());
        }
        self.session = id;
        self.one_session()
    }

    fn one_session(mut self) -> Self {
        if self.shared && !self.session.is_empty() {
            self.start =
                Err("a child has one session: give same_session() or in_session(id)".into());
        }
        self
    }

    /// Copies the child's stream to this run's stream.
    pub fn with_stream(mut self) -> Self {
        self.stream = true;
        self
    }

    /// Runs the child and returns its result: the result of a plain stop event, or the
    /// fields of a stop event with its own fields.
    ///
    /// # Errors
    ///
    /// If the child fails, the error has the child's code and message. If the workflow
    /// does not exist, the code is `not_found`. A child that fails does not fail the
    /// step, unless the step returns the error. When the run ends or the step fails, the
    /// child that the step waits for is cancelled, unless [`Child::named`] keeps it for
    /// the next attempt.
    pub fn result<R: DeserializeOwned>(self) -> Result<R> {
        let what = What(self.workflow);
        let stop = self.call()?;
        result_of(&stop).and_then(cbor::from_slice).map_err(|e| {
            let wanted = type_name::<R>();
            Error::misuse(format_args!("its result cannot be read as {wanted}: {e}")).context(what)
        })
    }

    /// Makes the request. Its keys are in the order of their lengths.
    fn call(self) -> Result<Vec<u8>> {
        let what = What(self.workflow);
        let start = self.start.map_err(|e| Error::misuse(e).context(&what))?;
        let own = self.shared || !self.session.is_empty();
        let given = [!self.id.is_empty(), own, self.stream];
        let mut request = Encoder::new();
        request.map(2 + given.iter().filter(|is| **is).count());
        if !self.id.is_empty() {
            request.text("id");
            request.text(self.id);
        }
        request.text("event");
        request.array(2);
        request.text("StartEvent"); // the host translates it to the workflow's own start event
        request.raw(&start);
        if own {
            request.text("session");
            request.map(1);
            if self.shared {
                request.text("shared");
                request.bool(true);
            } else {
                request.text("id");
                request.text(self.session);
            }
        }
        request.text("workflow");
        request.text(self.workflow);
        if self.stream {
            request.text("include_stream");
            request.bool(true);
        }
        check(boundary::run_workflow(&request.into_bytes()), what)
    }
}

/// A child, for messages.
struct What<'a>(&'a str);

impl fmt::Display for What<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run \"{}\"", self.0)
    }
}

/// The encoded result in a stop event.
fn result_of(stop: &[u8]) -> Result<&[u8], cbor::Error> {
    let mut decoder = Decoder::new(stop);
    decoder.array()?;
    if decoder.text()? != "StopEvent" {
        return decoder.raw();
    }
    for _ in 0..decoder.map()? {
        let key = decoder.text()?;
        let value = decoder.raw()?;
        if key == "result" {
            return Ok(value);
        }
    }
    Ok(&[0xf6])
}
