//! A step's access to its run: events, the stream, the log, time and randomness.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::boundary::{self, Answer};
use crate::cbor::{self, Decoder, Encoder};
use crate::error::{Error, Result, code};
use crate::event::{self, Event, EventType};
use crate::state::Untyped;
use crate::step::{Input, Shape, Start, StepDecl};
use crate::value::Value;

/// What a step receives besides its event: the session's state, whose type is `S`, and
/// everything that the host does for a step. [`Context::edit`] describes edits.
pub struct Context<S = Untyped> {
    pub(crate) invocation: Invocation,
    state: PhantomData<fn() -> S>,
}

/// The part of a context that does not depend on the state's type.
pub(crate) struct Invocation {
    pub(crate) decl: &'static StepDecl,
    steps: &'static [StepDecl],
    input: Vec<u8>,
    trigger: Range<usize>,
    /// The trigger as the host sent it, if its events were renamed.
    given: Vec<u8>,
}

impl Invocation {
    pub(crate) fn new(start: Start, end: usize) -> Self {
        Invocation {
            decl: start.decl,
            steps: start.steps,
            trigger: start.trigger..end,
            input: start.input,
            given: start.given,
        }
    }

    /// The data after the trigger: the run's data and the step's configuration.
    fn tail(&self) -> Decoder<'_> {
        Decoder::new(&self.input[self.trigger.end..])
    }

    fn send(&self, kind: &EventType, request: Encoder) -> Result<()> {
        let name = kind.name();
        if !self.decl.sends().any(|t| t.is(kind)) {
            return Err(Error::misuse(format_args!(
                "send: {name} is not declared: add it to the step, #[step(emits = [{name}])]"
            )));
        }
        check(boundary::send_event(&request.into_bytes()), "send").map(drop)
    }

    fn stream(&self, kind: &EventType, request: Encoder) -> Result<()> {
        let name = kind.name();
        if !self.decl.streams.iter().any(|t| t.is(kind)) {
            return Err(Error::misuse(format_args!(
                "stream: {name} is not declared: add it to the step, #[step(streams = [{name}])]"
            )));
        }
        check(
            boundary::write_event_to_stream(&request.into_bytes()),
            "stream",
        )
        .map(drop)
    }

    /// Renames events to the types that the step accepts, if it has `accept_subtypes`.
    pub(crate) fn renamed(
        &self,
        shape: Shape,
        types: &[&'static EventType],
        events: Vec<u8>,
    ) -> Result<Vec<u8>, cbor::Error> {
        match self.decl.extras.and_then(|e| e.rename) {
            Some(rename) => rename(self.steps, shape, types, &mut Decoder::new(&events)),
            None => Ok(events),
        }
    }

    /// Returns the encoded events once the set is complete.
    fn collect(&self, buffer: &str, types: &[&'static EventType]) -> Result<Option<Vec<u8>>> {
        if self.decl.input.shape != Shape::One {
            return Err(Error::misuse(
                "collect: the step takes several events at once already: let it take a single one",
            ));
        }
        if types.is_empty() {
            return Err(Error::misuse(
                "collect: nothing to collect: ask for an event or more",
            ));
        }
        let mut request = Encoder::new();
        request.array(if buffer.is_empty() { 2 } else { 3 });
        request.raw(if self.given.is_empty() {
            &self.input[self.trigger.clone()]
        } else {
            &self.given
        });
        request.array(types.len());
        for kind in types {
            request.text(kind.name());
        }
        if !buffer.is_empty() {
            request.text(buffer);
        }
        let response = check(boundary::collect_events(&request.into_bytes()), "collect")?;
        if Decoder::new(&response).null() {
            return Ok(None);
        }
        self.renamed(Shape::Join, types, response)
            .map(Some)
            .map_err(|e| Error::misuse(e).context("collect"))
    }

    fn log(&self, level: Level, message: &str, attributes: &[(&str, Value)]) {
        let mut request = Encoder::new();
        request.array(if attributes.is_empty() { 2 } else { 3 });
        request.int(level as i64);
        request.text(message);
        if !attributes.is_empty() {
            let attributes = attributes.iter().map(|(k, v)| (*k, v.clone()));
            if request.value(&Value::map(attributes)).is_err() {
                return;
            }
        }
        boundary::log(&request.into_bytes());
    }

    fn now(&self) -> Result<i64> {
        let response = check(boundary::now(&empty()), "now")?;
        cbor::from_slice(&response).map_err(|e| Error::misuse(e).context("now"))
    }

    fn run_info(&self) -> Result<RunInfo, cbor::Error> {
        RunInfo::read(&mut self.tail())
    }

    fn config(&self) -> Result<Option<&[u8]>, cbor::Error> {
        let mut tail = self.tail();
        tail.skip()?;
        if tail.is_at_end() {
            return Ok(None);
        }
        tail.raw().map(Some)
    }
}

/// A request without content.
pub(crate) fn empty() -> Vec<u8> {
    let mut request = Encoder::new();
    request.array(0);
    request.into_bytes()
}

/// The response of a host call, or its error with the attempted operation in front.
pub(crate) fn check(answer: Answer, what: impl fmt::Display) -> Result<Vec<u8>> {
    let (status, response) = answer;
    if status == 0 {
        return Ok(response);
    }
    let error = Error::decode(&mut Decoder::new(&response))
        .ok()
        .filter(|e| !e.code().is_empty())
        .unwrap_or_else(|| {
            Error::new(
                code::INTERNAL,
                format_args!("the host failed with status {status} and no readable error"),
            )
        });
    Err(error.context(what))
}

/// The importance of a log record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// For developers of the workflow.
    Debug = -4,
    /// Normal operation.
    Info = 0,
    /// Something that may become an error.
    Warn = 4,
    /// An error.
    Error = 8,
}

/// The run, session and attempt that a step works for.
#[derive(Debug)]
pub struct RunInfo {
    /// The tenant that owns the run.
    pub tenant: String,
    /// The name of the workflow.
    pub workflow: String,
    /// The run.
    pub run_id: String,
    /// The session that the run belongs to.
    pub session_id: String,
    /// The invocation: unique in the run, and the same for all attempts.
    pub invocation: u64,
    /// The attempt; 1 for the first.
    pub attempt: u64,
    /// When the attempt started.
    pub started: SystemTime,
    /// Why the previous attempt failed; `None` for the first attempt.
    pub last_error: Option<Error>,
}

impl RunInfo {
    fn read(decoder: &mut Decoder<'_>) -> Result<Self, cbor::Error> {
        let n = decoder.array()?;
        let mut info = RunInfo {
            tenant: decoder.value()?,
            workflow: decoder.value()?,
            run_id: decoder.value()?,
            session_id: decoder.value()?,
            invocation: decoder.value()?,
            attempt: decoder.value()?,
            started: time(decoder.value()?),
            last_error: None,
        };
        if n > 7 {
            info.last_error = Some(Error::decode(decoder)?);
        }
        Ok(info)
    }
}

/// A time in nanoseconds since 1970. A guest has no earlier times.
fn time(nanoseconds: i64) -> SystemTime {
    let epoch = SystemTime::UNIX_EPOCH;
    let distance = Duration::from_nanos(nanoseconds.unsigned_abs());
    let time = if nanoseconds < 0 {
        epoch.checked_sub(distance)
    } else {
        epoch.checked_add(distance)
    };
    time.unwrap_or(epoch)
}

impl<S> Context<S> {
    pub(crate) fn new(invocation: Invocation) -> Self {
        Context {
            invocation,
            state: PhantomData,
        }
    }

    /// Emits an event at once, in addition to what the step returns. The step must
    /// declare the event, by its result or by `#[step(emits = [...])]`.
    pub fn send<E: Event>(&self, event: &E) -> Result<()> {
        let request = event_request(1, event, "send")?;
        self.invocation.send(E::TYPE, request)
    }

    /// Emits an event to one step only.
    pub fn send_to<E: Event>(&self, step: &str, event: &E) -> Result<()> {
        let mut request = event_request(2, event, "send")?;
        request.text(step);
        self.invocation.send(E::TYPE, request)
    }

    /// Writes an event to the run's stream, where clients see it at once. No step
    /// receives it. The step must declare the event by `#[step(streams = [...])]`.
    pub fn stream<E: Event>(&self, event: &E) -> Result<()> {
        let request = event_request(1, event, "stream")?;
        self.invocation.stream(E::TYPE, request)
    }

    /// Stores the step's event until there is one event of each type. Returns `None`
    /// until then; the invocation whose event completes the set receives all of them.
    /// Surplus events wait for the next set.
    ///
    /// ```
    /// # use weft::prelude::*;
    /// # #[derive(Event)] struct Left { n: u32 }
    /// # #[derive(Event)] struct Right { n: u32 }
    /// #[derive(Events)]
    /// enum Side {
    ///     Left(Left),
    ///     Right(Right),
    /// }
    ///
    /// #[step]
    /// fn both(ctx: &Context, _: Side) -> Result<Option<Stop>> {
    ///     let Some((left, right)) = ctx.collect::<(Left, Right)>()? else {
    ///         return Ok(None);
    ///     };
    ///     Ok(Some(Stop::new(left.n + right.n)))
    /// }
    /// ```
    pub fn collect<E: Input>(&self) -> Result<Option<E>> {
        self.collect_in("")
    }

    /// Like [`Context::collect`], with a separate buffer, for steps that collect several
    /// sets.
    pub fn collect_in<E: Input>(&self, buffer: &str) -> Result<Option<E>> {
        if E::DECL.shape != Shape::Join {
            return Err(Error::misuse(
                "collect: name the events as a tuple, collect::<(First, Second)>(), or use collect_n",
            ));
        }
        let Some(response) = self.invocation.collect(buffer, E::DECL.types)? else {
            return Ok(None);
        };
        let events = E::read(&mut Decoder::new(&response));
        events
            .map(Some)
            .map_err(|e| Error::misuse(e).context("collect"))
    }

    /// Stores the step's event until there are n events of the type. Returns `None` until
    /// then.
    pub fn collect_n<E: Event>(&self, n: usize) -> Result<Option<Vec<E>>> {
        let Some(response) = self.invocation.collect("", &vec![E::TYPE; n])? else {
            return Ok(None);
        };
        let mut decoder = Decoder::new(&response);
        let mut events = Vec::new();
        let read = (|| {
            for _ in 0..decoder.array()? {
                events.push(event::read(&mut decoder)?);
            }
            Ok(())
        })();
        read.map_err(|e: cbor::Error| Error::misuse(e).context("collect"))?;
        Ok(Some(events))
    }

    /// The time. It does not advance while a step computes, and is the same when the step
    /// is replayed. (`SystemTime::now` and `Instant::now` panic in a guest.)
    pub fn now(&self) -> SystemTime {
        match self.invocation.now() {
            Ok(nanoseconds) => time(nanoseconds),
            Err(_) => self.run().started,
        }
    }

    /// The time in seconds since 1970.
    pub fn unix_seconds(&self) -> f64 {
        let since = self.now().duration_since(SystemTime::UNIX_EPOCH);
        since.unwrap_or_default().as_secs_f64()
    }

    /// n random bytes, at most 4096. They are the same when the step is
    /// replayed.
    pub fn random(&self, n: usize) -> Result<Vec<u8>> {
        if n > 4096 {
            return Err(Error::misuse(
                "random: ask for at most 4096 bytes at a time",
            ));
        }
        let mut request = Encoder::new();
        request.array(1);
        request.uint(n as u64);
        let response = check(boundary::random(&request.into_bytes()), "random")?;
        let bytes: crate::value::Bytes =
            cbor::from_slice(&response).map_err(|e| Error::misuse(e).context("random"))?;
        Ok(bytes.0)
    }

    /// Writes a log record.
    pub fn debug(&self, message: impl fmt::Display) {
        self.log(Level::Debug, message, &[]);
    }

    /// Writes a log record.
    pub fn info(&self, message: impl fmt::Display) {
        self.log(Level::Info, message, &[]);
    }

    /// Writes a log record.
    pub fn warn(&self, message: impl fmt::Display) {
        self.log(Level::Warn, message, &[]);
    }

    /// Writes a log record.
    pub fn error(&self, message: impl fmt::Display) {
        self.log(Level::Error, message, &[]);
    }

    /// Writes a log record with attributes. A record whose attributes cannot be encoded is
    /// dropped. An attempt that logs more than the limits `log_lines` and `log_bytes` allow
    /// ends with the code `limit_exceeded`.
    ///
    /// ```
    /// # use weft::prelude::*;
    /// # fn step(ctx: &Context, words: usize) {
    /// ctx.log(Level::Info, "counted", &[("words", words.into())]);
    /// # }
    /// ```
    pub fn log(&self, level: Level, message: impl fmt::Display, attributes: &[(&str, Value)]) {
        self.invocation.log(level, &message.to_string(), attributes);
    }

    /// The run, session and attempt that the step works for.
    ///
    /// # Panics
    ///
    /// If the host did not supply this data. The panic ends the attempt.
    pub fn run(&self) -> RunInfo {
        match self.invocation.run_info() {
            Ok(info) => info,
            Err(e) => panic!("cannot read the run's data: {e}"),
        }
    }

    /// Reads the step's configuration. Without a configuration, every field is absent.
    pub fn config<T: DeserializeOwned>(&self) -> Result<T> {
        let config = match self.invocation.config() {
            Ok(Some(config)) => cbor::from_slice(config),
            Ok(None) => cbor::from_slice(&[0xa0]),
            Err(e) => Err(e),
        };
        config.map_err(|e| Error::misuse(e).context("config"))
    }
}

/// A request of n items that begins with an event.
fn event_request<E: Event>(n: usize, event: &E, what: &str) -> Result<Encoder> {
    let mut request = Encoder::new();
    request.array(n);
    crate::event::EventSet::write(event, &mut request)
        .map_err(|e| Error::misuse(e).context(what))?;
    Ok(request)
}

/// A request with a path, and optionally a value.
pub(crate) fn path_request<T: Serialize + ?Sized>(
    path: &str,
    value: Option<&T>,
) -> Result<Vec<u8>, cbor::Error> {
    let mut request = Encoder::new();
    request.array(1 + usize::from(value.is_some()));
    request.text(path);
    if let Some(value) = value {
        request.value(value)?;
    }
    Ok(request.into_bytes())
}
