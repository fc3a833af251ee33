//! Event types.

use std::any::TypeId;

use serde::ser::{Error as _, SerializeStruct};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cbor::{self, Decoder, Encoder};
use crate::data::{self, Data, Open};
use crate::value::{Raw, Value};

/// The kind of an event type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// An event of the workflow itself.
    Plain,
    /// Starts the workflow.
    Start,
    /// Ends the run.
    Stop,
    /// Asks a person for input.
    InputRequired,
    /// Carries a person's answer.
    HumanResponse,
}

impl EventKind {
    /// The kind's name in the manifest, and its base type.
    fn names(self) -> Option<(&'static str, &'static str)> {
        match self {
            EventKind::Plain => None,
            EventKind::Start => Some(("start", "StartEvent")),
            EventKind::Stop => Some(("stop", "StopEvent")),
            EventKind::InputRequired => Some(("input_required", "InputRequiredEvent")),
            EventKind::HumanResponse => Some(("human_response", "HumanResponseEvent")),
        }
    }
}

/// What the SDK knows about an event's type.
pub struct EventType {
    name: &'static str,
    kind: EventKind,
    description: &'static str,
    schema: fn() -> Value,
    id: fn() -> TypeId,
    declared: bool,
    extends: Option<&'static EventType>,
}

impl EventType {
    /// The name of the type, for example `StartEvent`.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The kind of the type.
    pub const fn kind(&self) -> EventKind {
        self.kind
    }

    /// Whether two event types come from the same Rust type.
    pub(crate) fn is(&self, other: &EventType) -> bool {
        (self.id)() == (other.id)()
    }

    /// Marks a type that every host knows.
    pub(crate) const fn known(self) -> Self {
        EventType {
            declared: false,
            ..self
        }
    }

    /// Declares the event type that this one extends.
    #[doc(hidden)]
    pub const fn extends(self, base: &'static EventType) -> Self {
        EventType {
            extends: Some(base),
            ..self
        }
    }

    /// The name of the type that it extends.
    pub(crate) fn base(&self) -> Option<&'static str> {
        match (self.extends, self.kind.names()) {
            (Some(base), _) => Some(base.name),
            (None, Some((_, base))) if base != self.name => Some(base),
            _ => None,
        }
    }

    /// The type, the type that it extends, and so on.
    pub(crate) fn line(&'static self) -> impl Iterator<Item = &'static EventType> {
        std::iter::successors(Some(self), |t| t.extends)
    }

    /// The name of the nearest of the given types that it is or extends.
    pub(crate) fn is_one_of(&'static self, types: &[&'static EventType]) -> Option<&'static str> {
        let named = |name: &str| types.iter().find(|t| t.name == name).map(|t| t.name);
        self.line()
            .find_map(|t| named(t.name).or_else(|| named(t.base()?)))
    }

    /// The declaration for the manifest, or `None` if every host knows the type.
    pub(crate) fn manifest(&self) -> Option<Value> {
        if !self.declared {
            return None;
        }
        let mut schema = (self.schema)();
        data::set(&mut schema, "title", self.name.into());
        let mut decl = Value::map([("schema", schema)]);
        if let Some((kind, _)) = self.kind.names() {
            data::set(&mut decl, "kind", kind.into());
        }
        if let Some(base) = self.base() {
            data::set(&mut decl, "extends", base.into());
        }
        if !self.description.is_empty() {
            data::set(&mut decl, "description", self.description.into());
        }
        Some(decl)
    }
}

#[doc(hidden)]
pub const fn event_type<E: Data + 'static>(
    name: &'static str,
    kind: EventKind,
    description: &'static str,
) -> EventType {
    EventType {
        name,
        kind,
        description,
        schema: || E::schema(&mut Open::default()),
        id: TypeId::of::<E>,
        declared: true,
        extends: None,
    }
}

/// A struct that is an event. Use `#[derive(Event)]`, `StartEvent`, `StopEvent`,
/// `InputRequiredEvent` or `HumanResponseEvent`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an event type",
    note = "put #[derive(Event)] on it, or StartEvent, StopEvent, InputRequiredEvent, HumanResponseEvent"
)]
pub trait Event: Data + 'static {
    /// The type of the event.
    const TYPE: &'static EventType;
}

/// An event, or an enum with `#[derive(Events)]` that is one of several events.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an event",
    note = "put #[derive(Event)] on a struct, or #[derive(Events)] on an enum of events"
)]
pub trait EventSet: Sized + 'static {
    /// The types that it may have.
    const TYPES: &'static [&'static EventType];

    /// Reads the body of an event whose type has this name; `None` if the name is not in
    /// the set.
    #[doc(hidden)]
    fn read(name: &str, body: &mut Decoder<'_>) -> Result<Option<Self>, cbor::Error>;

    /// Writes the event.
    #[doc(hidden)]
    fn write(&self, encoder: &mut Encoder) -> Result<(), cbor::Error>;
}

impl<E: Event> EventSet for E {
    const TYPES: &'static [&'static EventType] = &[E::TYPE];

    fn read(name: &str, body: &mut Decoder<'_>) -> Result<Option<Self>, cbor::Error> {
        if name != E::TYPE.name {
            return Ok(None);
        }
        body.value()
            .map(Some)
            .map_err(|e: cbor::Error| e.within(name, None))
    }

    fn write(&self, encoder: &mut Encoder) -> Result<(), cbor::Error> {
        encoder.array(2);
        encoder.text(E::TYPE.name);
        encoder
            .value(self)
            .map_err(|e| e.within(E::TYPE.name, None))
    }
}

/// Reads an event of a set.
pub(crate) fn read<E: EventSet>(decoder: &mut Decoder<'_>) -> Result<E, cbor::Error> {
    let n = decoder.array()?;
    if n < 2 {
        return Err(decoder.fault("an event without a body"));
    }
    let name = decoder.text()?;
    let Some(event) = E::read(name, decoder)? else {
        let wanted = names(E::TYPES);
        return Err(decoder.fault(&format!("an event {name} where {wanted} is expected")));
    };
    for _ in 2..n {
        decoder.skip()?; // its id, and fields added by later versions
    }
    Ok(event)
}

/// The names of types, for messages.
pub(crate) fn names(types: &[&EventType]) -> String {
    let names: Vec<_> = types.iter().map(|t| t.name).collect();
    names.join(" or ")
}

/// A type that a run's result may have: anything that serde can serialize, including all
/// types that derive [`Data`](macro@crate::Data), and the standard library's types.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a result",
    note = "put #[derive(Data)] on it"
)]
pub trait Sendable: Serialize {}

impl<T: Serialize + ?Sized> Sendable for T {}

/// The event that ends the run: the base `StopEvent`. Its result becomes the run's
/// result.
///
/// ```
/// use weft::prelude::*;
/// # #[derive(StartEvent)] struct StartEvent { name: String }
///
/// #[step]
/// fn greet(_: &Context, ev: StartEvent) -> Result<Stop> {
///     Ok(Stop::new(format!("Hello, {}!", ev.name)))
/// }
/// ```
pub struct Stop {
    result: Result<Raw, String>,
}

impl Stop {
    /// Makes a stop event with a result, which is encoded immediately. A result that
    /// cannot be encoded fails the step that returns the event.
    pub fn new(result: impl Sendable) -> Self {
        let result = cbor::to_vec(&result);
        Stop {
            result: result.map(Raw::encoded).map_err(|e| e.to_string()),
        }
    }
}

impl Serialize for Stop {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let result = self.result.as_ref().map_err(S::Error::custom)?;
        let mut map = serializer.serialize_struct("Stop", 1)?;
        map.serialize_field("result", result)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Stop {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = std::collections::BTreeMap::<String, Raw>::deserialize(deserializer)?;
        Ok(Stop {
            result: Ok(fields.remove("result").unwrap_or_default()),
        })
    }
}

impl Data for Stop {
    fn schema(_: &mut Open) -> Value {
        Value::map([("type", "object".into())])
    }
}

impl Event for Stop {
    const TYPE: &'static EventType = &event_type::<Stop>("StopEvent", EventKind::Stop, "").known();
}
