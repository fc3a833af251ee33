//! Sessions: their state, and the data that all sessions of a test share.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use super::child::Starter;
use super::engine::World;
use super::{paths, resource, schema};
use crate::error::{Error, Result, code};
use crate::event::EventKind;
use crate::value::{Raw, Value};
use crate::workflow::Workflow;

/// The data that all sessions of a test share.
pub struct Root {
    /// In nanoseconds since 1970.
    pub clock: i64,
    chance: u64,
    runs: u32,
    /// The states, by session.
    states: BTreeMap<String, Rc<RefCell<Value>>>,
    pub resources: BTreeMap<String, resource::Answerer>,
    pub starters: BTreeMap<String, Starter>,
    /// The steps' configurations, by step.
    pub config: BTreeMap<String, Raw>,
    /// All runs, in the order of their beginning.
    pub worlds: Vec<Weak<RefCell<World>>>,
}

impl Default for Root {
    fn default() -> Self {
        Root {
            clock: 1_700_000_000_000_000_000,
            chance: 1,
            runs: 0,
            states: BTreeMap::new(),
            resources: BTreeMap::new(),
            starters: BTreeMap::new(),
            config: BTreeMap::new(),
            worlds: Vec::new(),
        }
    }
}

impl Root {
    /// A pseudo-random number of 0 to most.
    pub fn draw(&mut self, most: u64) -> i64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.random(8));
        (u64::from_be_bytes(bytes) % most.saturating_add(1)) as i64
    }

    /// Pseudo-random bytes, the same ones in every test.
    pub fn random(&mut self, n: usize) -> Vec<u8> {
        let mut byte = || {
            self.chance ^= self.chance << 13;
            self.chance ^= self.chance >> 7;
            self.chance ^= self.chance << 17;
            (self.chance >> 32) as u8
        };
        (0..n).map(|_| byte()).collect()
    }
}

/// A session, as the runs of one workflow see it.
#[derive(Clone)]
pub struct Place {
    pub id: String,
    pub root: Rc<RefCell<Root>>,
    pub state: Rc<RefCell<Value>>,
    /// The state that the workflow declares.
    initial: Value,
    schema: Value,
}

impl Place {
    /// A session of a workflow: the session with the id, which is created if it does not
    /// exist, or a new session.
    pub fn new(root: Rc<RefCell<Root>>, workflow: &'static Workflow, id: Option<&str>) -> Self {
        let mut all = root.borrow_mut();
        let next = format!("session-{}", all.states.len() + 1);
        let id = id.map_or(next, str::to_owned);
        let empty = || Rc::new(RefCell::new(Value::map::<&str>([])));
        let state = all.states.entry(id.clone()).or_insert_with(empty).clone();
        drop(all);
        let place = Place {
            id,
            root,
            state,
            initial: Value::Null,
            schema: Value::Null,
        };
        place.for_workflow(workflow)
    }

    /// The same session for another workflow, whose defaults are filled in.
    pub fn for_workflow(&self, workflow: &'static Workflow) -> Self {
        let manifest = workflow.manifest().unwrap_or_else(|e| panic!("{e}"));
        let declared = |key| manifest.get("state").and_then(|s| s.get(key)).cloned();
        let initial = declared("default").unwrap_or_else(|| Value::map::<&str>([]));
        if let (Value::Map(state), Value::Map(defaults)) = (&mut *self.state.borrow_mut(), &initial)
        {
            for (key, value) in defaults {
                state.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        Place {
            initial,
            schema: declared("schema").unwrap_or_default(),
            ..self.clone()
        }
    }

    /// The id of the next run.
    pub fn next_run(&self) -> String {
        let mut root = self.root.borrow_mut();
        root.runs += 1;
        format!("run-{}", root.runs)
    }

    /// Makes a batch of edits, all or none; gives their results.
    pub fn edit(&self, edits: &[(String, String, Value)]) -> Result<Vec<Value>> {
        let mut state = self.state.borrow().clone();
        let mut results = Vec::new();
        for (op, path, value) in edits {
            let value = value.clone();
            results.push(paths::edit(&mut state, &self.initial, op, path, value)?);
        }
        if let Err((path, fault)) = schema::check(&self.schema, &state) {
            let message = format_args!("the state at \"{path}\": {fault}");
            return Err(Error::new(code::SCHEMA_VIOLATION, message));
        }
        self.state.replace(state);
        Ok(results)
    }
}

impl Workflow {
    /// The type of the workflow's start event.
    pub(super) fn start_type(&self) -> &'static str {
        let mut taken = self.steps().iter().flat_map(|s| s.input.types);
        taken
            .find(|t| t.kind() == EventKind::Start)
            .map_or("StartEvent", |t| t.name())
    }
}
