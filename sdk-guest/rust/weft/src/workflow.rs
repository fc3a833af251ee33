//! The workflow of a plugin: its manifest, and the dispatch of invocations to steps.

use std::any::type_name;

use crate::boundary;
use crate::cbor::{self, Decoder, Encoder};
use crate::data::{self, Open};
use crate::error::{Error, Result};
use crate::event::EventType;
use crate::panic;
use crate::resource::Resource;
use crate::state::State;
use crate::step::{InputDecl, Shape, Start, StepDecl};
use crate::value::Value;

/// The version of the ABI that this SDK uses.
const ABI_VERSION: u64 = 1;

/// A workflow, as `workflow!` declares it.
pub struct Workflow {
    name: &'static str,
    steps: &'static [StepDecl],
    state: Option<StateDecl>,
    timeout: Option<u64>,
    version: Option<&'static str>,
    description: Option<&'static str>,
    resources: Option<Resources>,
    part: bool,
}

/// The resources that it requires. Only a workflow with resources contains the code that
/// describes them.
type Resources = (&'static [Resource], fn(&[Resource]) -> Value);

/// The type of the state.
#[doc(hidden)]
pub struct StateDecl {
    name: &'static str,
    schema: fn() -> Value,
    initial: fn() -> Result<Value>,
}

#[doc(hidden)]
pub const fn state_decl<S: State>() -> StateDecl {
    StateDecl {
        name: S::NAME,
        schema: || S::schema(&mut Open::default()),
        initial: || {
            Value::of(&S::default())
                .map_err(|e| e.context(format_args!("the default of {}", type_name::<S>())))
        },
    }
}

impl Workflow {
    #[doc(hidden)]
    pub const fn new(name: &'static str, steps: &'static [StepDecl]) -> Self {
        Workflow {
            name,
            steps,
            state: None,
            timeout: None,
            version: None,
            description: None,
            resources: None,
            part: false,
        }
    }

    #[doc(hidden)]
    pub const fn state(self, state: StateDecl) -> Self {
        Workflow {
            state: Some(state),
            ..self
        }
    }

    #[doc(hidden)]
    pub const fn timeout(self, duration: &str) -> Self {
        Workflow {
            timeout: Some(crate::duration::parse(duration)),
            ..self
        }
    }

    #[doc(hidden)]
    pub const fn version(self, text: &'static str) -> Self {
        Workflow {
            version: Some(text),
            ..self
        }
    }

    #[doc(hidden)]
    pub const fn description(self, text: &'static str) -> Self {
        Workflow {
            description: Some(text),
            ..self
        }
    }

    #[doc(hidden)]
    pub const fn resources(self, list: &'static [Resource]) -> Self {
        Workflow {
            resources: Some((list, Resource::manifest)),
            ..self
        }
    }

    #[doc(hidden)]
    pub const fn part(self, part: bool) -> Self {
        Workflow { part, ..self }
    }

    /// The workflow's name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn steps(&self) -> &'static [StepDecl] {
        self.steps
    }

    /// The timeout of its runs, in nanoseconds.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn time_limit(&self) -> Option<u64> {
        self.timeout
    }

    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn is_part(&self) -> bool {
        self.part
    }

    /// The manifest: the description of the workflow for the host.
    ///
    /// # Errors
    ///
    /// Two event types have the same name, or the state's default is not data.
    pub fn manifest(&self) -> Result<Value> {
        let mut manifest = Value::map([
            ("abi", ABI_VERSION.into()),
            ("workflow", self.name.into()),
            ("steps", Value::list(self.steps.iter().map(step))),
            ("events", self.events()?),
        ]);
        let mut put = |key, value: Option<Value>| {
            if let Some(value) = value {
                data::set(&mut manifest, key, value);
            }
        };
        put("version", self.version.map(Into::into));
        put("description", self.description.map(Into::into));
        put("timeout", self.timeout.map(Into::into));
        put("part", self.part.then(|| true.into()));
        put(
            "resources",
            self.resources.map(|(list, manifest)| manifest(list)),
        );
        if let Some(state) = &self.state {
            let mut schema = (state.schema)();
            data::set(&mut schema, "title", state.name.into());
            let initial = (state.initial)()?;
            put(
                "state",
                Some(Value::map([("schema", schema), ("default", initial)])),
            );
        }
        Ok(manifest)
    }

    /// The declarations of all events that the steps use.
    fn events(&self) -> Result<Value> {
        let mut known: Vec<&EventType> = Vec::new();
        let mut events = Value::map::<&str>([]);
        let named = self.steps.iter().flat_map(StepDecl::types);
        for kind in named.flat_map(EventType::line) {
            match known.iter().find(|k| k.name() == kind.name()) {
                Some(k) if k.is(kind) => continue,
                Some(_) => {
                    return Err(Error::misuse(format_args!(
                        "two event types are named {}: name one by #[weft(name = \"OtherEvent\")]",
                        kind.name()
                    )));
                }
                None => known.push(kind),
            }
            if let Some(decl) = kind.manifest() {
                data::set(&mut events, kind.name(), decl);
            }
        }
        Ok(events)
    }

    fn find(&self, name: &str) -> Result<&'static StepDecl> {
        self.steps.iter().find(|s| s.name == name).ok_or_else(|| {
            Error::misuse(format_args!(
                "the workflow \"{}\" has no step \"{name}\"",
                self.name
            ))
        })
    }

    /// Runs an invocation and returns its output.
    fn run(&self, input: Vec<u8>) -> Result<Vec<u8>> {
        let mut decoder = Decoder::new(&input);
        let named = decoder.array().and_then(|_| decoder.text());
        let name = named.map_err(|e| Error::misuse(e).context("cannot read the invocation"))?;
        let decl = self.find(name)?;
        let trigger = decoder.offset();
        (decl.run)(Start {
            decl,
            steps: self.steps,
            input,
            trigger,
            given: Vec::new(),
        })
    }
}

fn names(types: &[&EventType]) -> Value {
    Value::list(types.iter().map(|t| t.name()))
}

/// A step's entry in the manifest.
fn step(decl: &StepDecl) -> Value {
    let mut step = Value::map([
        ("name", decl.name.into()),
        ("accepts", accepts(&decl.input, decl.take)),
    ]);
    let mut put = |key, value: Option<Value>| {
        if let Some(value) = value {
            data::set(&mut step, key, value);
        }
    };
    let mut emits: Vec<Value> = decl.sends().map(|t| t.name().into()).collect();
    if decl.output.list {
        emits.push(Value::list(["list".into(), names(decl.output.types)]));
    }
    put("emits", (!emits.is_empty()).then(|| emits.into()));
    put("workers", decl.workers.map(Into::into));
    put("timeout", decl.timeout.map(Into::into));
    let description = decl.description;
    put(
        "description",
        (!description.is_empty()).then(|| description.into()),
    );
    if let Some(extras) = decl.extras {
        (extras.describe)(extras, &mut step);
    }
    step
}

/// The slots of a step: one slot, or for a join one slot for each event.
fn accepts(input: &InputDecl, take: Option<u32>) -> Value {
    let slot = |kind: &str| {
        let mut slot: Vec<Value> = vec![kind.into(), names(input.types)];
        slot.extend(take.map(Value::from));
        Value::list([Value::from(slot)])
    };
    match input.shape {
        Shape::List => slot("list"),
        Shape::One if input.types.len() > 1 => slot("any"),
        Shape::One | Shape::Join => names(input.types),
    }
}

/// Serves `weft_describe`. A fault in the declaration panics; the server then refuses the
/// module when it is uploaded.
#[doc(hidden)]
pub fn describe(workflow: &Workflow) {
    panic::install();
    let manifest = workflow
        .manifest()
        .and_then(|m| cbor::to_vec(&m).map_err(Error::misuse));
    match manifest {
        Ok(manifest) => boundary::output(&manifest),
        Err(e) => panic!("workflow \"{}\": {}", workflow.name, e.message()),
    }
}

/// Serves `weft_step`, whose input has `input_len` bytes.
#[doc(hidden)]
pub fn step_export(workflow: &Workflow, input_len: u32) -> i32 {
    panic::install();
    match workflow.run(boundary::input(input_len as usize)) {
        Ok(output) => {
            boundary::output(&output);
            0
        }
        Err(error) => {
            let mut encoder = Encoder::new();
            encoder.array(2);
            encoder.uint(1);
            error.encode(&mut encoder);
            boundary::output(&encoder.into_bytes());
            1
        }
    }
}
