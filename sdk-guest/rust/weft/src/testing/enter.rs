//! External events: start events and posts, which are checked when they arrive.

use super::engine::World;
use super::place::Place;
use super::schema;
use crate::error::{Error, Result, code};
use crate::event::EventKind;
use crate::value::{Raw, Value};
use crate::workflow::Workflow;

/// The code of requests that a server refuses.
const REFUSED: &str = "invalid_argument";

/// The types that every workflow knows, and clients may send.
const KNOWN: [&str; 2] = ["HumanResponseEvent", "InputRequiredEvent"];

impl World {
    /// Begins the run.
    pub fn start(&mut self, body: Raw) -> Result<()> {
        if self.workflow.is_part() {
            return Err(Error::new(
                REFUSED,
                "the plugin has steps for a workflow of several plugins (part): call one of its functions, by Session::function",
            ));
        }
        let name = self.workflow.start_type();
        self.check("start_event", name, &body)?;
        self.emit(name, body, None, Default::default());
        Ok(())
    }

    /// Receives an external event.
    pub fn post(&mut self, name: &str, body: Raw) -> Result<()> {
        if self.is_over() {
            return Err(Error::new(code::FAILED_PRECONDITION, "the run has ended"));
        }
        let why = match self.kind(name) {
            EventKind::Start => "A start event begins a run and cannot be sent to one",
            EventKind::Stop => "Only a step can end a run",
            _ if self.known(name).is_none() && !KNOWN.contains(&name) => {
                "The workflow has none of that name"
            }
            _ => "",
        };
        if !why.is_empty() {
            let message = format_args!("Invalid event type: {name}. {why}");
            return Err(Error::new(REFUSED, message));
        }
        self.check("event", name, &body)?;
        let body = self.filled(name, body);
        self.emit(name, body, None, Default::default());
        Ok(())
    }

    /// An event with the defaults of its fields, if a step may wait for it: the
    /// conditions of a wait are compared with the event that the step will see.
    fn filled(&self, name: &str, body: Raw) -> Raw {
        let schema = self.known(name).and_then(|t| t.manifest());
        let schema = schema.as_ref().and_then(|s| s.get("schema"));
        let properties = schema.and_then(|s| s.get("properties"));
        let (Some(Value::Map(properties)), Ok(Value::Map(mut fields))) =
            (properties, body.read::<Value>())
        else {
            return body;
        };
        if !self.is_waited_for(name) {
            return body;
        }
        for (field, property) in properties {
            if let (Some(default), false) = (property.get("default"), fields.contains_key(field)) {
                fields.insert(field.clone(), default.clone());
            }
        }
        Raw::of(&Value::Map(fields)).unwrap_or(body)
    }

    /// Checks an event against its type's schema.
    fn check(&self, what: &str, name: &str, body: &Raw) -> Result<()> {
        let Some(schema) = self.known(name).and_then(|t| t.manifest()) else {
            return Ok(());
        };
        let Some(schema) = schema.get("schema") else {
            return Ok(());
        };
        schema::check(schema, &body.read()?).map_err(|(path, fault)| {
            let at = if path.is_empty() { "" } else { "." };
            Error::new(REFUSED, format_args!("{what}{at}{path}: {fault}"))
        })
    }
}

/// Names a resource that the workflow requires but the test does not provide.
pub fn check_grants(workflow: &'static Workflow, place: &Place) -> Result<()> {
    let manifest = workflow.manifest()?;
    let asked = manifest.get("resources").and_then(Value::as_list);
    for resource in asked.unwrap_or_default() {
        let name = resource.get("name").and_then(Value::as_str).unwrap_or("");
        let optional = resource.get("optional").and_then(Value::as_bool) == Some(true);
        if !optional && !place.root.borrow().resources.contains_key(name) {
            return Err(Error::new(
                code::PERMISSION_DENIED,
                format_args!(
                    "workflow {} cannot start: the resource {name} is not granted: give the session one, .resource(\"{name}\", ...)",
                    workflow.name()
                ),
            ));
        }
    }
    Ok(())
}
