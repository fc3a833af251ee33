//! Steps with `accept_subtypes` take events as the types that they extend. Before such an event is
//! read, it is renamed to the type that the step accepts. Only a plugin with such a step contains
//! this code.

use crate::cbor::{self, Decoder, Encoder};
use crate::error::Result;
use crate::event::EventType;
use crate::step::{Shape, Start, StepDecl};

/// Renames events to the types that the step accepts.
pub type Rename = fn(
    steps: &'static [StepDecl],
    shape: Shape,
    types: &[&'static EventType],
    events: &mut Decoder,
) -> Result<Vec<u8>, cbor::Error>;

/// An invocation's input whose trigger was renamed to types that the step knows.
#[doc(hidden)]
pub fn rename_trigger(mut start: Start) -> Result<Start> {
    let input = start.decl.input;
    let mut decoder = Decoder::new(&start.input[start.trigger..]);
    let renamed = rename(start.steps, input.shape, input.types, &mut decoder)
        .map_err(|e| start.unreadable(&e))?;
    let end = start.trigger + decoder.offset();
    start.given = start.input.splice(start.trigger..end, renamed).collect();
    Ok(start)
}

/// See [`Rename`].
#[doc(hidden)]
pub fn rename(
    steps: &'static [StepDecl],
    shape: Shape,
    types: &[&'static EventType],
    events: &mut Decoder,
) -> Result<Vec<u8>, cbor::Error> {
    let mut out = Encoder::new();
    if shape == Shape::One {
        event(steps, types, events, &mut out)?;
        return Ok(out.into_bytes());
    }
    let n = events.array()?;
    out.array(n);
    for i in 0..n {
        let types = match types.get(i..=i) {
            Some(slot) if shape == Shape::Join => slot,
            _ => types,
        };
        event(steps, types, events, &mut out)?;
    }
    Ok(out.into_bytes())
}

fn event(
    steps: &'static [StepDecl],
    types: &[&'static EventType],
    event: &mut Decoder,
    out: &mut Encoder,
) -> Result<(), cbor::Error> {
    let n = event.array()?;
    let name = event.text()?;
    out.array(n);
    out.text(taken_as(steps, types, name).unwrap_or(name));
    for _ in 1..n {
        out.raw(event.raw()?);
    }
    Ok(())
}

/// The name of the type as which an event is taken: its own type, or the nearest type that it
/// extends. The plugin may not know an event from another plugin of the workflow; such an event is
/// taken as the only type that the step accepts.
fn taken_as(
    steps: &'static [StepDecl],
    types: &[&'static EventType],
    name: &str,
) -> Option<&'static str> {
    let known = steps.iter().flat_map(StepDecl::types);
    let mut lines = known.flat_map(EventType::line);
    if let Some(kind) = lines.find(|t| t.name() == name) {
        return kind.is_one_of(types);
    }
    match types {
        [only] => Some(only.name()),
        _ => None,
    }
}
