//! Functions: what flows call.

use std::collections::BTreeMap;

use weft_macros::{Data, Event};

use crate::value::Value;

/// What a flow hands to a function: the run's input, and what the nodes before
/// it came to.
#[derive(Event, Clone, Debug)]
pub struct StepInput {
    /// The input that the run was started with.
    #[weft(default)]
    pub input: Value,
    /// The content of the node before; of one with others in it, of the last.
    #[weft(default)]
    pub previous_step_content: Value,
    /// The outputs of the nodes before, by name.
    #[weft(default)]
    pub previous_step_outputs: BTreeMap<String, NodeOutput>,
    /// What the start says beside the input.
    #[weft(default)]
    pub additional_data: BTreeMap<String, Value>,
    /// The names that a router's selector may choose.
    #[weft(default)]
    pub step_choices: Vec<String>,
    /// The iteration, from 1, of the loop whose end condition is asked for.
    #[weft(default)]
    pub current_iteration: u64,
    /// How many iterations that loop may have.
    #[weft(default)]
    pub max_iterations: u64,
}

impl StepInput {
    /// The input as text, empty if it is none.
    pub fn text(&self) -> &str {
        self.input.as_str().unwrap_or_default()
    }

    /// The content of the node before as text, empty if it is none.
    pub fn previous_text(&self) -> &str {
        self.previous_step_content.as_str().unwrap_or_default()
    }
}

/// The output of a node before.
#[derive(Data, Clone, Debug)]
pub struct NodeOutput {
    /// What it came to.
    #[weft(default)]
    pub content: Value,
    /// Whether it succeeded.
    #[weft(default = true)]
    pub success: bool,
    /// Why it did not.
    pub error: Option<String>,
    /// Whether it ended the flow.
    #[weft(default)]
    pub stop: bool,
    /// The outputs of the nodes in it.
    #[weft(default)]
    pub steps: Vec<Value>,
}

/// What a function gives back to its flow: content of any kind; a bool if it
/// decides a condition or the end of a loop, a name or a list of names if it
/// selects for a router.
///
/// A function that returns an error has failed, and its node with it. One that
/// returns an output with an `error` has only said so, and the flow goes on.
#[derive(Event, Clone, Debug)]
pub struct StepOutput {
    /// What it came to.
    #[weft(default)]
    pub content: Value,
    /// Why it did not go well; none if it did.
    pub error: Option<String>,
    /// Ends the whole flow, successfully, with this as its last output.
    #[weft(default)]
    pub stop: bool,
}

impl StepOutput {
    /// An output with a content.
    pub fn content(content: impl Into<Value>) -> Self {
        StepOutput {
            content: content.into(),
            error: None,
            stop: false,
        }
    }

    /// An output that ends the flow with a content.
    pub fn stop_with(content: impl Into<Value>) -> Self {
        StepOutput {
            stop: true,
            ..StepOutput::content(content)
        }
    }
}
