//! The macros of the `weft` crate, which re-exports them; depend on `weft`. They turn
//! plain structs and functions into the parts of a workflow:
//!
//! | macro | makes |
//! |---|---|
//! | `#[derive(Data)]` | a struct, tuple or enum that events and the state may hold |
//! | `#[derive(Event)]` and its kinds | an event type |
//! | `#[derive(Events)]` | a choice between event types |
//! | `#[derive(State)]` | the type of a session's state |
//! | `#[step]` | a step from a function |
//! | `#[function]` | a function that flows call |
//! | `workflow!` | the plugin's exports |
//!
//! The crate must not depend on how anything is encoded or run: the generated code only
//! uses traits and functions of the `weft` crate.

mod attributes;
mod data;
mod event;
mod step;
mod workflow;

use proc_macro::TokenStream;
use syn::{DeriveInput, Error, parse_macro_input};

/// Tokens, or an error with its position.
type Expansion = Result<proc_macro2::TokenStream, Error>;

fn finish(expansion: Expansion) -> TokenStream {
    expansion.unwrap_or_else(Error::into_compile_error).into()
}

/// Makes a type that events and the state may hold.
///
/// A struct with named fields becomes a map, a tuple struct a list, a struct with a
/// single unnamed field that field, and an enum without data a text.
///
/// ```
/// use weft::prelude::*;
///
/// /// What is ordered.
/// #[derive(Data)]
/// struct Line {
///     /// the article's number
///     #[weft(name = "sku")]
///     article: String,
///     #[weft(default = 1, min = 1, max = 100)]
///     quantity: u32,
///     note: Option<String>,
///     colour: Colour,
/// }
///
/// #[derive(Data)]
/// enum Colour {
///     Red,
///     #[weft(name = "blueish")]
///     Blue,
/// }
///
/// let line: Line = Value::map([("sku", "A-1".into()), ("colour", "red".into())]).read()?;
/// assert_eq!((line.quantity, line.note), (1, None));
/// # Ok::<(), weft::Error>(())
/// ```
///
/// Options of a field, as `#[weft(...)]`:
///
/// | option | meaning |
/// |---|---|
/// | `name = "key"` | a key that differs from the field's name |
/// | `default`, `default = VALUE` | the value when the key is absent or null |
/// | `min = N`, `max = N` | bounds of a number in the JSON Schema |
/// | `any` | for a type with only serde's traits: the schema allows everything |
/// | `extra` | a map for the keys that no other field declares |
///
/// A field of type `Option` may be absent, and is omitted when it is `None`. Comments
/// become descriptions in the schema.
#[proc_macro_derive(Data, attributes(weft))]
pub fn derive_data(input: TokenStream) -> TokenStream {
    finish(data::expand(&parse_macro_input!(input as DeriveInput)))
}

/// Makes a struct an event that steps take and return. Its type's name is the struct's
/// name, unless `#[weft(name = "OtherEvent")]` is given. Fields are as in
/// [`Data`](macro@Data).
///
/// With `#[weft(extends = BaseEvent)]`, steps with `accept_subtypes` also take it as a
/// `BaseEvent`. It has the fields of `BaseEvent`, and may have more.
///
/// ```
/// use weft::prelude::*;
///
/// #[derive(Event)]
/// struct ItemEvent {
///     item: String,
///     index: usize,
/// }
/// assert_eq!(ItemEvent::TYPE.name(), "ItemEvent");
/// ```
#[proc_macro_derive(Event, attributes(weft))]
pub fn derive_event(input: TokenStream) -> TokenStream {
    event(input, event::Kind::Plain)
}

/// Makes a struct the event that starts the workflow. A struct named `StartEvent` is the
/// base start event; any other name extends it. See [`Event`](macro@Event).
#[proc_macro_derive(StartEvent, attributes(weft))]
pub fn derive_start_event(input: TokenStream) -> TokenStream {
    event(input, event::Kind::Start)
}

/// Makes a struct an event that ends the run, with the struct as its result.
/// For a plain result use `Stop`. See [`Event`](macro@Event).
#[proc_macro_derive(StopEvent, attributes(weft))]
pub fn derive_stop_event(input: TokenStream) -> TokenStream {
    event(input, event::Kind::Stop)
}

/// Makes a struct an event that asks a person for input. A struct named
/// `InputRequiredEvent` is the base type. See [`Event`](macro@Event).
#[proc_macro_derive(InputRequiredEvent, attributes(weft))]
pub fn derive_input_required_event(input: TokenStream) -> TokenStream {
    event(input, event::Kind::InputRequired)
}

/// Makes a struct an event that carries a person's answer. A struct named
/// `HumanResponseEvent` is the base type. See [`Event`](macro@Event).
#[proc_macro_derive(HumanResponseEvent, attributes(weft))]
pub fn derive_human_response_event(input: TokenStream) -> TokenStream {
    event(input, event::Kind::HumanResponse)
}

fn event(input: TokenStream, kind: event::Kind) -> TokenStream {
    finish(event::expand(
        &parse_macro_input!(input as DeriveInput),
        kind,
    ))
}

/// Makes an enum whose variants each hold an event a choice between event types: the
/// argument of a step that takes several types, or the result of a step that returns one
/// of several types.
///
/// ```
/// use weft::prelude::*;
/// # #[derive(Event)] struct LoopEvent { i: u64 }
/// # #[derive(Event)] struct DoneEvent { i: u64 }
///
/// #[derive(Events)]
/// enum Next {
///     Again(LoopEvent),
///     Done(DoneEvent),
/// }
///
/// #[step]
/// fn turn(_: &Context, ev: LoopEvent) -> Result<Next> {
///     Ok(if ev.i < 3 {
///         Next::Again(LoopEvent { i: ev.i + 1 })
///     } else {
///         Next::Done(DoneEvent { i: ev.i })
///     })
/// }
/// ```
#[proc_macro_derive(Events)]
pub fn derive_events(input: TokenStream) -> TokenStream {
    finish(event::expand_choice(&parse_macro_input!(
        input as DeriveInput
    )))
}

/// Makes a struct the type of a session's state. A new session starts with its
/// `Default`. Fields are as in [`Data`](macro@Data).
#[proc_macro_derive(State, attributes(weft))]
pub fn derive_state(input: TokenStream) -> TokenStream {
    finish(event::expand_state(&parse_macro_input!(
        input as DeriveInput
    )))
}

/// Makes a function a step. The function takes a context and an event, and returns a
/// result with the next events.
///
/// ```
/// use weft::prelude::*;
/// # #[derive(Event)] struct ItemEvent { item: String }
/// # #[derive(Event)] struct DoneEvent { length: usize }
///
/// /// Measures an item.
/// #[step(workers = 4, timeout = "30s", retry = fixed("10ms").attempts(3))]
/// fn measure(ctx: &Context, ev: ItemEvent) -> Result<DoneEvent> {
///     ctx.debug(format_args!("measuring {}", ev.item));
///     Ok(DoneEvent { length: ev.item.len() })
/// }
/// ```
///
/// | takes | | returns | |
/// |---|---|---|---|
/// | `E` | one event | `E` | one event |
/// | `Vec<E>` | all events that one list of events led to | `Option<E>` | one event, or nothing |
/// | `(A, B)` up to four | one event of each type | `Vec<E>` | a list of events |
/// | | | `()` | nothing |
///
/// where `E` is an event or an enum with `#[derive(Events)]`.
///
/// | option | meaning |
/// |---|---|
/// | `name = "other"` | a name that differs from the function's |
/// | `workers = N` | how many invocations run concurrently in a run: 1 to 1000, default 4 |
/// | `timeout = "30s"` | limit of one invocation |
/// | `retry = RULES` | see the module `weft::retry` |
/// | `take = N` | for a step that takes a list: run at the N-th arrival |
/// | `emits = [A, B]` | additional events that it sends by `Context::send` |
/// | `streams = [A, B]` | events that it writes by `Context::stream`, or with which a wait asks |
/// | `waits = [A, B]` | events that it waits for by `Context::wait_for` |
/// | `catches = [a, b]` | steps whose failures it handles, as a `StepFailed`; `all` instead of a list means all other steps; in a list, `cancelled` and `timeout` are ends of the run, and a text names a step of a different plugin |
/// | `max_recoveries = N` | how often it catches failures that follow from one event, default 1 |
/// | `atomic` | its changes to the state, its sends and its stream events take effect together when it succeeds, or not at all |
/// | `accept_subtypes` | also takes, and waits for, events that extend the events it names |
///
/// The function stays an ordinary function. Its comment becomes the step's description.
#[proc_macro_attribute]
pub fn step(options: TokenStream, function: TokenStream) -> TokenStream {
    let options = parse_macro_input!(options as step::Options);
    finish(step::expand(
        &options,
        &parse_macro_input!(function as syn::ItemFn),
    ))
}

/// Makes a function that flows can call, as `PLUGIN.NAME`. The function takes a
/// `StepInput` and returns a `StepOutput`. The plugin is a `part`; the options are those
/// of a [`step`](macro@step).
///
/// ```
/// use weft::prelude::*;
///
/// #[function]
/// fn shout(_: &Context, input: StepInput) -> Result<StepOutput> {
///     Ok(StepOutput::content(input.text().to_uppercase()))
/// }
///
/// workflow!("shouting", part, steps = [shout]);
/// ```
#[proc_macro_attribute]
pub fn function(options: TokenStream, function: TokenStream) -> TokenStream {
    step(options, function)
}

/// Makes a plugin of steps: names the workflow, lists its steps and exports the functions
/// that the host calls. Use it once, at the end of `src/lib.rs`. It also defines
/// `WORKFLOW`, which tests use.
///
/// ```
/// use weft::prelude::*;
///
/// #[derive(StartEvent)]
/// struct StartEvent;
///
/// #[derive(State, Default)]
/// struct Tally {
///     runs: u64,
/// }
///
/// #[step]
/// fn count(ctx: &Context<Tally>, _: StartEvent) -> Result<Stop> {
///     let runs = ctx.edit(|t| {
///         t.runs += 1;
///         t.runs
///     })?;
///     Ok(Stop::new(runs))
/// }
///
/// workflow!("tally", state = Tally, steps = [count]);
/// ```
///
/// | option | meaning |
/// |---|---|
/// | `steps = [a, b]` | the steps |
/// | `state = T` | the type of the session's state; without it, the state may be anything |
/// | `timeout = "10m"`, `timeout = none` | limit of a run; the default is the host's; use `none` for workflows that wait for people |
/// | `resources = [http("crm")]` | the external resources that it requires; see the module `weft::resource` |
/// | `part` | the plugin contains steps of a workflow composed of several plugins; the name is then for people only |
/// | `version = "1.2"`, `description = "..."` | for people |
#[proc_macro]
pub fn workflow(input: TokenStream) -> TokenStream {
    finish(workflow::expand(&parse_macro_input!(
        input as workflow::Declaration
    )))
}
