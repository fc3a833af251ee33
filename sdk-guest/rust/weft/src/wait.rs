//! Long waits in a step: for an event, and for a time.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::time::Duration;

use crate::boundary;
use crate::cbor::{Decoder, Encoder};
use crate::context::{Context, Invocation, check};
use crate::duration::nanoseconds;
use crate::error::{Error, Result};
use crate::event::{self, Event, EventSet, EventType};
use crate::step::Shape;
use crate::value::Value;

impl<S> Context<S> {
    /// Waits for an event, without a limit on time unless [`Wait::timeout`] sets one.
    /// While it waits, the plugin uses neither CPU nor memory, and a restart of the
    /// server does not disturb the wait. The step declares the event by `waits`, and the
    /// question by `streams`.
    ///
    /// ```
    /// # use weft::prelude::*;
    /// # use std::time::Duration;
    /// # #[derive(StartEvent)] struct StartEvent { item: String }
    /// #[derive(InputRequiredEvent)]
    /// struct Question { prefix: String }
    ///
    /// #[derive(HumanResponseEvent)]
    /// struct Answer { approved: bool }
    ///
    /// #[step(waits = [Answer], streams = [Question])]
    /// fn approve(ctx: &Context, ev: StartEvent) -> Result<Stop> {
    ///     let prefix = format!("approve {}?", ev.item);
    ///     let answer = ctx
    ///         .wait_for::<Answer>()
    ///         .named("manager")
    ///         .ask(&Question { prefix })
    ///         .matching("role", "manager")
    ///         .timeout(Duration::from_secs(24 * 60 * 60))
    ///         .event()?;
    ///     Ok(Stop::new(answer.approved))
    /// }
    /// ```
    ///
    /// The settings in between are optional. Two waits in a row receive two events. When
    /// the step is retried after a failure, a wait that was answered returns the same
    /// answer, and nobody is asked twice.
    pub fn wait_for<E: Event>(&self) -> Wait<'_, E> {
        Wait {
            request: Request {
                invocation: &self.invocation,
                id: String::new(),
                ask: None,
                matching: BTreeMap::new(),
                timeout: 0,
                broadcast: false,
                fault: None,
            },
            event: PhantomData,
        }
    }

    /// Waits for the given time, which may be long. While it waits, the plugin uses
    /// neither CPU nor memory, and a restart of the server does not disturb it. It uses
    /// wall time, which continues while the server is down.
    pub fn sleep(&self, duration: Duration) -> Result<()> {
        let nanoseconds = nanoseconds(duration);
        if nanoseconds == 0 {
            return Ok(());
        }
        let mut request = Encoder::new();
        request.array(1);
        request.uint(nanoseconds);
        check(boundary::sleep(&request.into_bytes()), "sleep").map(drop)
    }
}

/// A wait that has not begun; see [`Context::wait_for`].
#[must_use = "a wait begins with .event()"]
pub struct Wait<'a, E> {
    request: Request<'a>,
    event: PhantomData<fn() -> E>,
}

/// The request of a wait to the host.
struct Request<'a> {
    invocation: &'a Invocation,
    id: String,
    ask: Option<Vec<u8>>,
    matching: BTreeMap<String, Value>,
    /// In nanoseconds; 0 means no timeout.
    timeout: u64,
    broadcast: bool,
    fault: Option<Error>,
}

impl<E: Event> Wait<'_, E> {
    /// Names the wait, for people and for the step's next attempt, which finds the answer
    /// by the name. A second wait under the same name is separate: the next attempt
    /// matches waits of the same name in order. A wait without a name is identified by
    /// what it waits for and by how many such waits the step made before.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.request.id = name.into();
        if self.request.id.is_empty() || self.request.id.len() > 128 {
            self.request.fail("wait: a name has 1 to 128 bytes");
        }
        self
    }

    /// Publishes an event on the run's stream, once, when the wait begins. The step must
    /// declare the event by `streams`.
    pub fn ask<A: Event>(mut self, event: &A) -> Self {
        let mut encoder = Encoder::new();
        match EventSet::write(event, &mut encoder) {
            Ok(()) => self.request.ask(A::TYPE, encoder.into_bytes()),
            Err(e) => self.request.fail(&format!("wait: {e}")),
        }
        self
    }

    /// Accepts only events whose field has the given value.
    pub fn matching(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.request.matching.insert(field.to_owned(), value.into());
        self
    }

    /// Gives up after the given time, with the code `timeout`.
    pub fn timeout(mut self, duration: Duration) -> Self {
        self.request.timeout = nanoseconds(duration);
        if self.request.timeout == 0 {
            self.request
                .fail("wait: a timeout must be above 0: leave it out for none");
        }
        self
    }

    /// Accepts an event without taking it from other waits. Otherwise an event goes only
    /// to the wait that began first.
    pub fn broadcast(mut self) -> Self {
        self.request.broadcast = true;
        self
    }

    /// Waits, and returns the event.
    ///
    /// # Errors
    ///
    /// The timeout has passed (the code `timeout`), the step does not declare the event,
    /// or the step is atomic (`failed_precondition`).
    pub fn event(self) -> Result<E> {
        let invocation = self.request.invocation;
        let response = self.request.call(E::TYPE)?;
        invocation
            .renamed(Shape::One, &[E::TYPE], response)
            .and_then(|event| event::read(&mut Decoder::new(&event)))
            .map_err(|e| Error::misuse(e).context("wait"))
    }
}

impl Request<'_> {
    #[cold]
    fn fail(&mut self, message: &str) {
        self.fault.get_or_insert_with(|| Error::misuse(message));
    }

    fn ask(&mut self, kind: &EventType, event: Vec<u8>) {
        let declared = self.invocation.decl.streams.iter().any(|t| t.is(kind));
        if !declared {
            let name = kind.name();
            self.fail(&format!(
                "wait: {name} is not declared: add it to the step, #[step(streams = [{name}])]"
            ));
        }
        self.ask = Some(event);
    }

    /// Makes the request. Its keys are in the order of their lengths.
    fn call(self, kind: &EventType) -> Result<Vec<u8>> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let name = kind.name();
        if !self.invocation.decl.waits().iter().any(|t| t.is(kind)) {
            return Err(Error::misuse(format_args!(
                "wait: {name} is not declared: add it to the step, #[step(waits = [{name}])]"
            )));
        }
        let given = [
            self.timeout > 0,
            self.broadcast,
            !self.id.is_empty(),
            !self.matching.is_empty(),
            self.ask.is_some(),
        ];
        let mut request = Encoder::new();
        request.map(1 + given.iter().filter(|is| **is).count());
        request.text("type");
        request.text(name);
        if self.timeout > 0 {
            request.text("timeout");
            request.uint(self.timeout);
        }
        if self.broadcast {
            request.text("broadcast");
            request.bool(true);
        }
        if !self.id.is_empty() {
            request.text("waiter_id");
            request.text(&self.id);
        }
        if !self.matching.is_empty() {
            request.text("requirements");
            let written = request.value(&self.matching);
            written.map_err(|e| Error::misuse(e).context("wait"))?;
        }
        if let Some(event) = self.ask {
            request.text("waiter_event");
            request.raw(&event);
        }
        check(boundary::wait_for_event(&request.into_bytes()), "wait")
    }
}
