//! Functions that flows call.

use std::collections::BTreeMap;

use weft_macros::{Data, Event};

use crate::value::Value;

/// What a flow passes to a function: the run's input and the outputs of earlier nodes.
#[derive(Event, Clone, Debug)]
pub struct StepInput {
    /// The input that the run was started with.
    #[weft(default)]
    pub input: Value,
    /// The content of the previous node; of a node with nested nodes, the content of the
    /// last one.
    #[weft(default)]
    pub previous_step_content: Value,
    /// The outputs of earlier nodes, by name.
    #[weft(default)]
    pub previous_step_outputs: BTreeMap<String, NodeOutput>,
    /// The data in the start event besides the input.
    #[weft(default)]
    pub additional_data: BTreeMap<String, Value>,
    /// The names that a router's selector may choose from.
    #[weft(default)]
    pub step_choices: Vec<String>,
    /// The iteration, from 1, of the loop whose end condition is evaluated.
    #[weft(default)]
    pub current_iteration: u64,
    /// The maximum number of iterations of that loop.
    #[weft(default)]
    pub max_iterations: u64,
}

impl StepInput {
    /// The input as text, or empty if it is not text.
    pub fn text(&self) -> &str {
        self.input.as_str().unwrap_or_default()
    }

    /// The content of the previous node as text, or empty if it is not text.
    pub fn previous_text(&self) -> &str {
        self.previous_step_content.as_str().unwrap_or_default()
    }
}

/// The output of an earlier node.
#[derive(Data, Clone, Debug)]
pub struct NodeOutput {
    /// The node's content.
    #[weft(default)]
    pub content: Value,
    /// Whether the node succeeded.
    #[weft(default = true)]
    pub success: bool,
    /// Why the node failed.
    pub error: Option<String>,
    /// Whether the node ended the flow.
    #[weft(default)]
    pub stop: bool,
    /// The outputs of nested nodes.
    #[weft(default)]
    pub steps: Vec<Value>,
}

/// What a function returns to its flow. The content may be of any type: a bool if the
/// function decides a condition or the end of a loop, a name or a list of names if it
/// selects for a router.
///
/// A function that returns an error fails, and its node fails too. A function that
/// returns an output with an `error` only reports a failure, and the flow continues.
#[derive(Event, Clone, Debug)]
pub struct StepOutput {
    /// The content.
    #[weft(default)]
    pub content: Value,
    /// Why the function did not succeed; `None` if it did.
    pub error: Option<String>,
    /// Ends the whole flow successfully, with this output as its last.
    #[weft(default)]
    pub stop: bool,
}

impl StepOutput {
    /// Makes an output with the given content.
    pub fn content(content: impl Into<Value>) -> Self {
        StepOutput {
            content: content.into(),
            error: None,
            stop: false,
        }
    }

    /// Makes an output that ends the flow with the given content.
    pub fn stop_with(content: impl Into<Value>) -> Self {
        StepOutput {
            stop: true,
            ..StepOutput::content(content)
        }
    }
}
