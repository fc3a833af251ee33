//! The Rust SDK for weft step plugins: WebAssembly modules that contain the steps of one
//! workflow.
//!
//! A step is a function that takes an event and returns the next event. Events are
//! structs; the derive macro sets their kind. The host keeps the state, and a step
//! accesses it by the [`Context`]. [`workflow!`] declares the workflow of the plugin:
//!
//! ```
//! use weft::prelude::*;
//!
//! #[derive(StartEvent)]
//! struct StartEvent {
//!     items: Vec<String>,
//! }
//!
//! #[derive(Event)]
//! struct ItemEvent {
//!     item: String,
//!     index: usize,
//! }
//!
//! #[derive(Event)]
//! struct ProcessedItemEvent {
//!     index: usize,
//! }
//!
//! #[derive(State, Default)]
//! struct Tally {
//!     results: Vec<(usize, String)>,
//! }
//!
//! #[step]
//! fn start(_: &Context<Tally>, ev: StartEvent) -> Result<Vec<ItemEvent>> {
//!     let items = ev.items.into_iter().enumerate();
//!     Ok(items.map(|(index, item)| ItemEvent { item, index }).collect())
//! }
//!
//! #[step(workers = 4, retry = fixed("10ms").attempts(3))]
//! fn process_item(ctx: &Context<Tally>, ev: ItemEvent) -> Result<ProcessedItemEvent> {
//!     let line = format!("Processed: {}", ev.item);
//!     ctx.edit(|tally| tally.results.push((ev.index, line)))?; // as if alone
//!     Ok(ProcessedItemEvent { index: ev.index })
//! }
//!
//! #[step]
//! fn finalize(ctx: &Context<Tally>, all: Vec<ProcessedItemEvent>) -> Result<Stop> {
//!     let mut results = ctx.state()?.results;
//!     results.sort();
//!     ctx.info(format_args!("processed {} items", all.len()));
//!     Ok(Stop::new(results))
//! }
//!
//! workflow!("accumulator", state = Tally, steps = [start, process_item, finalize]);
//!
//! # fn main() {
//! let session = weft::testing::Session::new(&WORKFLOW);
//! let run = session.run(&Value::map([("items", Value::list(["a", "b"]))])).unwrap();
//! assert_eq!(run.result::<Vec<(usize, String)>>().unwrap()[1].1, "Processed: b");
//! # }
//! ```
//!
//! [`macro@step`] describes what a step may take and return, and [`macro@Data`] which
//! types fields may have. A guest starts every invocation from the same memory and has
//! one thread. Time and random numbers come from the context. A plugin cannot open files
//! or sockets.
//!
//! The crate must not depend on how the host runs steps, only on the messages between
//! host and guest.

#![warn(missing_docs)]
#![deny(unsafe_code)]

extern crate self as weft;

mod boundary;
mod cbor;
mod child;
mod context;
mod data;
mod duration;
mod error;
mod event;
mod failure;
mod function;
#[cfg(test)]
mod golden;
pub mod kv;
pub mod llm;
mod panic;
pub mod resource;
pub mod retry;
mod state;
mod step;
mod subtypes;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
mod value;
mod wait;
mod workflow;

pub use child::Child;
pub use context::{Context, Level, RunInfo};
pub use data::{Data, Open};
pub use error::{Error, Result, code};
pub use event::{Event, EventKind, EventSet, EventType, Sendable, Stop};
pub use failure::{Exception, StepFailed};
pub use function::{NodeOutput, StepInput, StepOutput};
pub use resource::{Http, HttpRequest, HttpResponse, Resource};
pub use state::{Batch, State, Untyped};
pub use step::{Input, Output};
pub use value::{Bytes, Raw, Value};
pub use wait::Wait;
pub use weft_macros::{
    Data, Event, Events, HumanResponseEvent, InputRequiredEvent, StartEvent, State, StopEvent,
    function, step, workflow,
};
pub use workflow::Workflow;

/// Everything that a plugin needs, for `use weft::prelude::*`.
pub mod prelude {
    pub use crate::{
        Bytes, Context, Data, Error, Event, Events, HttpRequest, HttpResponse, HumanResponseEvent,
        InputRequiredEvent, Level, Result, StartEvent, State, StepFailed, StepInput, StepOutput,
        Stop, StopEvent, Value, function, step, workflow,
    };
}

/// Items that the macros use.
#[doc(hidden)]
pub mod __private {
    pub use crate::cbor::{Decoder, Encoder, Error as CborError};
    pub use crate::data::enum_schema;
    pub use crate::event::event_type;
    pub use crate::failure::Catches;
    pub use crate::panic::print;
    pub use crate::state::{Fits, fits};
    pub use crate::step::{
        ContextType, Extras, Returns, Start, Step, StepDecl, run, take, timeout, workers,
    };
    pub use crate::subtypes::{rename, rename_trigger};
    pub use crate::workflow::{describe, state_decl, step_export as step};
    pub use serde;

    use serde::de::{self, DeserializeSeed, Deserializer, Visitor};

    use crate::data::Data;

    /// A key of a map that is read to a struct.
    pub enum Key {
        /// The declared key with this index.
        Field(usize),
        /// Another key; its text only if the key is kept.
        Other(String),
    }

    /// Reads keys of a struct.
    pub struct Keys {
        declared: &'static [&'static str],
        keep: bool,
    }

    impl Keys {
        pub fn keeping(declared: &'static [&'static str]) -> Self {
            Keys {
                declared,
                keep: true,
            }
        }

        pub fn dropping(declared: &'static [&'static str]) -> Self {
            Keys {
                declared,
                keep: false,
            }
        }
    }

    impl<'de> DeserializeSeed<'de> for Keys {
        type Value = Key;

        fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Key, D::Error> {
            deserializer.deserialize_identifier(self)
        }
    }

    impl Visitor<'_> for Keys {
        type Value = Key;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a key")
        }

        fn visit_str<E>(self, key: &str) -> Result<Key, E> {
            Ok(match self.declared.iter().position(|k| *k == key) {
                Some(i) => Key::Field(i),
                None if self.keep => Key::Other(key.to_owned()),
                None => Key::Other(String::new()),
            })
        }
    }

    /// The value of a required field.
    pub fn required<T, E: de::Error>(value: Option<T>, key: &'static str) -> Result<T, E> {
        value.ok_or_else(|| E::missing_field(key))
    }

    /// The value of a field, or the value that its type gives an absent field.
    pub fn required_data<T: Data, E: de::Error>(
        value: Option<T>,
        key: &'static str,
    ) -> Result<T, E> {
        value
            .or_else(T::absent)
            .ok_or_else(|| E::missing_field(key))
    }
}
