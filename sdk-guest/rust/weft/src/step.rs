//! Steps: what they take and return, and how they run.

use crate::cbor::{self, Decoder, Encoder};
use crate::context::{Context, Invocation};
use crate::data;
use crate::error::{Error, Result};
use crate::event::{self, Event, EventSet, EventType};
use crate::failure::Catches;
use crate::subtypes::Rename;
use crate::value::Value;

/// What a step can take: an event, a list of events, or one event of each type
/// of a tuple.
#[diagnostic::on_unimplemented(
    message = "a step cannot take `{Self}`",
    note = "it takes an event (a struct with #[derive(Event)]), an enum with #[derive(Events)], a Vec of one of these, or a tuple of events"
)]
pub trait Input: Sized {
    #[doc(hidden)]
    const DECL: InputDecl;

    /// Reads the invocation's trigger.
    #[doc(hidden)]
    fn read(decoder: &mut Decoder<'_>) -> Result<Self, cbor::Error>;
}

/// What a step can return.
#[diagnostic::on_unimplemented(
    message = "a step cannot give `{Self}`",
    note = "it gives an event (a struct with #[derive(Event)]), an enum with #[derive(Events)], an Option or a Vec of one of these, or ()",
    note = "a value that ends the run is given as Stop::new(value); events of several types are sent by ctx.send"
)]
pub trait Output {
    #[doc(hidden)]
    const DECL: OutputDecl;

    /// Writes the second item of the invocation's output.
    #[doc(hidden)]
    fn write(&self, encoder: &mut Encoder) -> Result<(), cbor::Error>;
}

/// The shape of what a step takes.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    One,
    List,
    Join,
}

/// What a step takes.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct InputDecl {
    pub shape: Shape,
    pub types: &'static [&'static EventType],
}

/// What a step returns.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct OutputDecl {
    pub list: bool,
    pub types: &'static [&'static EventType],
}

/// A step's declaration.
#[doc(hidden)]
pub struct StepDecl {
    pub name: &'static str,
    pub description: &'static str,
    pub input: InputDecl,
    pub output: OutputDecl,
    /// Events that it sends, in addition to those that it returns.
    pub emits: &'static [&'static EventType],
    pub streams: &'static [&'static EventType],
    pub workers: Option<u32>,
    /// The timeout in nanoseconds.
    pub timeout: Option<u64>,
    pub take: Option<u32>,
    /// Rarely used options.
    pub extras: Option<&'static Extras>,
    pub run: fn(Start) -> Result<Vec<u8>>,
}

impl StepDecl {
    pub const fn new(
        name: &'static str,
        input: InputDecl,
        output: OutputDecl,
        run: fn(Start) -> Result<Vec<u8>>,
    ) -> Self {
        StepDecl {
            name,
            description: "",
            input,
            output,
            emits: &[],
            streams: &[],
            workers: None,
            timeout: None,
            take: None,
            extras: None,
            run,
        }
    }

    /// The events that it may send on its own: those that it returns one at a time, and
    /// the additional ones.
    pub fn sends(&self) -> impl Iterator<Item = &'static EventType> {
        let given: &[_] = if self.output.list {
            &[]
        } else {
            self.output.types
        };
        given.iter().chain(self.emits).copied()
    }

    /// The events that it may wait for.
    pub fn waits(&self) -> &'static [&'static EventType] {
        self.extras.map_or(&[], |e| e.waits)
    }

    /// All events that it names.
    pub fn types(&self) -> impl Iterator<Item = &'static EventType> {
        let lists = [
            self.input.types,
            self.output.types,
            self.emits,
            self.streams,
            self.waits(),
        ];
        lists.into_iter().flatten().copied()
    }
}

/// Rarely used options of a step. A plugin without such options does not contain the code
/// for them.
#[doc(hidden)]
pub struct Extras {
    pub retry: Option<fn() -> Value>,
    pub waits: &'static [&'static EventType],
    pub catches: Catches,
    pub max_recoveries: Option<u64>,
    pub atomic: bool,
    /// Set for a step that accepts subtypes.
    pub rename: Option<Rename>,
    /// Adds these options to a step's entry in the manifest.
    pub describe: fn(&Extras, &mut Value),
}

impl Extras {
    pub const NONE: Extras = Extras {
        retry: None,
        waits: &[],
        catches: Catches::Nothing,
        max_recoveries: None,
        atomic: false,
        rename: None,
        describe: Extras::describe,
    };

    fn describe(&self, step: &mut Value) {
        let mut put = |key, value: Option<Value>| {
            if let Some(value) = value {
                data::set(step, key, value);
            }
        };
        put("retry", self.retry.map(|policy| policy()));
        let waits = Value::list(self.waits.iter().map(|t| t.name()));
        put("waits", (!self.waits.is_empty()).then_some(waits));
        put(
            "catches",
            match self.catches {
                Catches::Nothing => None,
                Catches::All => Some("*".into()),
                Catches::Steps(names) => Some(Value::list(names.iter().copied())),
            },
        );
        put("max_recoveries", self.max_recoveries.map(Into::into));
        put("atomic", self.atomic.then(|| true.into()));
        put(
            "accept_subtypes",
            self.rename.is_some().then(|| true.into()),
        );
    }
}

/// What `#[step]` makes of a function.
#[doc(hidden)]
pub trait Step {
    type State;
    const NAME: &'static str;
    const DECL: StepDecl;
}

/// The type that a step returns.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a step gives a Result, not `{Self}`",
    note = "write `-> Result<NextEvent>`, or `-> Result<()>` for nothing"
)]
pub trait Returns {
    type Output: Output;
    fn into_result(self) -> Result<Self::Output>;
}

impl<T: Output, E: Into<Error>> Returns for Result<T, E> {
    type Output = T;

    fn into_result(self) -> Result<T> {
        self.map_err(Into::into)
    }
}

/// The type referred to by a step's first argument.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a step's first argument is a context, not `{Self}`",
    note = "write `ctx: &Context`, or `ctx: &Context<State>`"
)]
pub trait ContextType {
    type State;
}

impl<S> ContextType for Context<S> {
    type State = S;
}

impl<E: EventSet> Input for E {
    const DECL: InputDecl = InputDecl {
        shape: Shape::One,
        types: E::TYPES,
    };

    fn read(decoder: &mut Decoder<'_>) -> Result<Self, cbor::Error> {
        event::read(decoder)
    }
}

impl<E: EventSet> Input for Vec<E> {
    const DECL: InputDecl = InputDecl {
        shape: Shape::List,
        types: E::TYPES,
    };

    fn read(decoder: &mut Decoder<'_>) -> Result<Self, cbor::Error> {
        let n = decoder.array()?;
        let mut list = Vec::new(); // grows as items arrive
        for i in 0..n {
            let start = decoder.offset();
            let event = event::read(decoder).map_err(|e| e.within(&i.to_string(), Some(start)))?;
            list.push(event);
        }
        Ok(list)
    }
}

macro_rules! joins {
    ($($n:literal: $($part:ident)+;)*) => {$(
        impl<$($part: Event),+> Input for ($($part,)+) {
            const DECL: InputDecl = InputDecl { shape: Shape::Join, types: &[$($part::TYPE),+] };

            fn read(decoder: &mut Decoder<'_>) -> Result<Self, cbor::Error> {
                if decoder.array()? != $n {
                    return Err(decoder.fault("a join with another number of events"));
                }
                Ok(($(event::read::<$part>(decoder)?,)+))
            }
        }
    )*};
}

joins! {
    2: A B;
    3: A B C;
    4: A B C D;
}

impl<E: EventSet> Output for E {
    const DECL: OutputDecl = OutputDecl {
        list: false,
        types: E::TYPES,
    };

    fn write(&self, encoder: &mut Encoder) -> Result<(), cbor::Error> {
        EventSet::write(self, encoder)
    }
}

impl<E: EventSet> Output for Option<E> {
    const DECL: OutputDecl = <E as Output>::DECL;

    fn write(&self, encoder: &mut Encoder) -> Result<(), cbor::Error> {
        match self {
            Some(event) => EventSet::write(event, encoder),
            None => {
                encoder.null();
                Ok(())
            }
        }
    }
}

impl<E: EventSet> Output for Vec<E> {
    const DECL: OutputDecl = OutputDecl {
        list: true,
        types: E::TYPES,
    };

    fn write(&self, encoder: &mut Encoder) -> Result<(), cbor::Error> {
        encoder.array(self.len());
        for (i, event) in self.iter().enumerate() {
            EventSet::write(event, encoder).map_err(|e| e.within(&i.to_string(), None))?;
        }
        Ok(())
    }
}

impl Output for () {
    const DECL: OutputDecl = OutputDecl {
        list: false,
        types: &[],
    };

    fn write(&self, encoder: &mut Encoder) -> Result<(), cbor::Error> {
        encoder.null();
        Ok(())
    }
}

/// An invocation's input. So far only the step's name has been read.
#[doc(hidden)]
pub struct Start {
    pub(crate) decl: &'static StepDecl,
    /// All steps of the workflow.
    pub(crate) steps: &'static [StepDecl],
    pub(crate) input: Vec<u8>,
    /// Where the trigger begins.
    pub(crate) trigger: usize,
    /// The trigger as the host sent it, if its events were renamed.
    pub(crate) given: Vec<u8>,
}

/// Runs a step's function and returns the invocation's output.
#[doc(hidden)]
pub fn run<S, E: Input, R: Returns>(
    start: Start,
    function: fn(&Context<S>, E) -> R,
) -> Result<Vec<u8>> {
    let mut decoder = Decoder::new(&start.input[start.trigger..]);
    let event = E::read(&mut decoder).map_err(|e| start.unreadable(&e))?;
    let end = start.trigger + decoder.offset();
    let name = start.decl.name;
    let context = Context::new(Invocation::new(start, end));
    let output = function(&context, event).into_result()?;
    drop(context);
    let mut encoder = Encoder::new();
    encoder.array(2);
    encoder.uint(0);
    output.write(&mut encoder).map_err(|e| {
        Error::misuse(format_args!(
            "cannot give the result of step \"{name}\": {e}"
        ))
    })?;
    Ok(encoder.into_bytes())
}

impl Start {
    #[cold]
    pub(crate) fn unreadable(&self, error: &cbor::Error) -> Error {
        let name = self.decl.name;
        Error::misuse(format_args!(
            "cannot read the event of step \"{name}\": {error}"
        ))
    }
}

/// The number of workers, checked at compile time.
#[doc(hidden)]
pub const fn workers(n: u32) -> Option<u32> {
    assert!(n >= 1 && n <= 1000, "workers must be 1 to 1000");
    Some(n)
}

/// The number of arrivals at which a collecting step runs.
#[doc(hidden)]
pub const fn take(n: u32) -> Option<u32> {
    assert!(n >= 1, "take must be at least 1");
    Some(n)
}

/// A step's timeout.
#[doc(hidden)]
pub const fn timeout(text: &str) -> Option<u64> {
    let nanoseconds = crate::duration::parse(text);
    assert!(
        nanoseconds > 0,
        "a step's timeout must be above 0: leave it out for none"
    );
    Some(nanoseconds)
}
