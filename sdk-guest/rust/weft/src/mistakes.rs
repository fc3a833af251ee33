//! What the compiler must refuse. Each of these differs from this, which it
//! takes, in one place:
//!
//! ```
//! use weft::prelude::*;
//! #[derive(StartEvent)]
//! struct StartEvent {
//!     name: String,
//! }
//! #[derive(State, Default)]
//! struct Tally {
//!     runs: u64,
//! }
//! #[step(workers = 4, timeout = "1s", retry = fixed("10ms").attempts(3))]
//! fn start(_: &Context<Tally>, _: StartEvent) -> Result<Stop> {
//!     Ok(Stop::new(()))
//! }
//! workflow!("name", state = Tally, steps = [start], timeout = "1h");
//! ```
//!
//! The workflow does not name the state of its steps:
//!
//! ```compile_fail
//! use weft::prelude::*;
//! #[derive(StartEvent)]
//! struct StartEvent;
//! #[derive(State, Default)]
//! struct Tally {
//!     runs: u64,
//! }
//! #[step]
//! fn start(_: &Context<Tally>, _: StartEvent) -> Result<Stop> {
//!     Ok(Stop::new(()))
//! }
//! workflow!("name", steps = [start]);
//! ```
//!
//! A duration has no unit, and there are too many workers:
//!
//! ```compile_fail
//! use weft::prelude::*;
//! #[derive(StartEvent)]
//! struct StartEvent;
//! #[step(timeout = "1")]
//! fn start(_: &Context, _: StartEvent) -> Result<Stop> {
//!     Ok(Stop::new(()))
//! }
//! workflow!("name", steps = [start]);
//! ```
//!
//! ```compile_fail
//! use weft::prelude::*;
//! #[derive(StartEvent)]
//! struct StartEvent;
//! #[step(workers = 1001)]
//! fn start(_: &Context, _: StartEvent) -> Result<Stop> {
//!     Ok(Stop::new(()))
//! }
//! workflow!("name", steps = [start]);
//! ```
//!
//! An option that there is not; a name that is none:
//!
//! ```compile_fail
//! use weft::prelude::*;
//! #[derive(StartEvent)]
//! struct StartEvent;
//! #[step(worker = 4)]
//! fn start(_: &Context, _: StartEvent) -> Result<Stop> {
//!     Ok(Stop::new(()))
//! }
//! ```
//!
//! ```compile_fail
//! use weft::prelude::*;
//! #[derive(StartEvent)]
//! struct StartEvent;
//! #[step]
//! fn start(_: &Context, _: StartEvent) -> Result<Stop> {
//!     Ok(Stop::new(()))
//! }
//! workflow!("Name", steps = [start]);
//! ```
//!
//! Functions that are no steps: one that waits, one with another argument, one
//! that takes or gives what is no event:
//!
//! ```compile_fail
//! use weft::prelude::*;
//! #[derive(StartEvent)]
//! struct StartEvent;
//! #[step]
//! async fn start(_: &Context, _: StartEvent) -> Result<Stop> {
//!     Ok(Stop::new(()))
//! }
//! ```
//!
//! ```compile_fail
//! use weft::prelude::*;
//! #[derive(StartEvent)]
//! struct StartEvent;
//! #[step]
//! fn start(_: &Context, _: StartEvent, _: u32) -> Result<Stop> {
//!     Ok(Stop::new(()))
//! }
//! ```
//!
//! ```compile_fail
//! use weft::prelude::*;
//! struct StartEvent;
//! #[step]
//! fn start(_: &Context, _: StartEvent) -> Result<Stop> {
//!     Ok(Stop::new(()))
//! }
//! ```
//!
//! ```compile_fail
//! use weft::prelude::*;
//! #[derive(StartEvent)]
//! struct StartEvent;
//! #[step]
//! fn start(_: &Context, _: StartEvent) -> Result<u32> {
//!     Ok(1)
//! }
//! ```
//!
//! Data that have no one schema, or two fields of one key:
//!
//! ```compile_fail
//! use weft::prelude::*;
//! #[derive(Data)]
//! struct Name<'a> {
//!     text: &'a str,
//! }
//! ```
//!
//! ```compile_fail
//! use weft::prelude::*;
//! #[derive(Data)]
//! enum Shape {
//!     Circle(f64),
//!     Square,
//! }
//! ```
//!
//! ```compile_fail
//! use weft::prelude::*;
//! #[derive(Data)]
//! struct Twice {
//!     one: u8,
//!     #[weft(name = "one")]
//!     two: u8,
//! }
//! ```
