//! Language models that the operator grants, as resources of the kind `llm`.
//!
//! ```
//! use weft::llm::{ChatRequest, llm};
//! use weft::prelude::*;
//! # #[derive(StartEvent)] struct StartEvent { topic: String }
//!
//! #[step]
//! fn joke(ctx: &Context, ev: StartEvent) -> Result<Stop> {
//!     let request = ChatRequest::new().user(format!("A joke about {}", ev.topic));
//!     Ok(Stop::new(ctx.llm("llm").chat(&request)?.content))
//! }
//!
//! workflow!("jokes", resources = [llm("llm")], steps = [joke]);
//! # fn main() {}
//! ```

use std::collections::BTreeMap;

use crate::context::Context;
use crate::error::Result;
use crate::resource::{Resource, resource};
use crate::value::Value;

/// A resource of the kind `llm`, for `workflow!(..., resources = [...])`.
pub const fn llm(name: &'static str) -> Resource {
    resource(name, "llm")
}

impl<S> Context<S> {
    /// Returns the granted resource of the kind `llm` with the given name, to ask a
    /// model.
    pub fn llm<'a>(&'a self, name: &'a str) -> Llm<'a, S> {
        Llm {
            context: self,
            name,
        }
    }
}

/// A granted resource of the kind `llm`.
pub struct Llm<'a, S> {
    context: &'a Context<S>,
    name: &'a str,
}

impl<S> Llm<'_, S> {
    /// Sends a request to the model. The answer is recorded: a step that is retried, or
    /// that continues after a crash, gets the recorded answer and does not call the model
    /// again.
    ///
    /// # Errors
    ///
    /// The operator does not allow the call (the code `permission_denied`), the service
    /// is not reachable or refuses (`unavailable`), or the service does not answer in
    /// time (`timeout`).
    pub fn chat(&self, request: &ChatRequest) -> Result<ChatResponse> {
        let answer: Value = self.context.call(self.name, "chat", &request.payload())?;
        Ok(ChatResponse::of(&answer))
    }
}

/// A request to a model.
#[derive(Clone, Debug, Default)]
pub struct ChatRequest {
    messages: Vec<Value>,
    fields: BTreeMap<String, Value>,
}

impl ChatRequest {
    /// A request without messages.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a message with a role: `system`, `user`, `assistant` or `tool`.
    #[must_use]
    pub fn message(mut self, role: &str, text: impl Into<String>) -> Self {
        let text: String = text.into();
        let entries = [("role", Value::from(role)), ("content", Value::from(text))];
        self.messages.push(Value::map(entries));
        self
    }

    /// Adds a message that tells the model how to behave.
    #[must_use]
    pub fn system(self, text: impl Into<String>) -> Self {
        self.message("system", text)
    }

    /// Adds a message of the user.
    #[must_use]
    pub fn user(self, text: impl Into<String>) -> Self {
        self.message("user", text)
    }

    /// Adds a message of the model.
    #[must_use]
    pub fn assistant(self, text: impl Into<String>) -> Self {
        self.message("assistant", text)
    }

    /// Names the model; the default is the resource's model.
    #[must_use]
    pub fn model(self, name: &str) -> Self {
        self.field("model", name)
    }

    /// Writes the answer to the run's stream as it arrives.
    #[must_use]
    pub fn stream(self) -> Self {
        self.field("stream", true)
    }

    /// Requests JSON that matches a JSON Schema; see [`ChatResponse::value`].
    #[must_use]
    pub fn schema(self, schema: Value) -> Self {
        self.field("schema", schema)
    }

    /// Sets another field of the request, such as `tools`, `temperature` or
    /// `max_tokens`.
    #[must_use]
    pub fn field(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    fn payload(&self) -> Value {
        let mut fields = self.fields.clone();
        fields.insert("messages".to_owned(), Value::List(self.messages.clone()));
        Value::Map(fields)
    }
}

/// A model's answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatResponse {
    /// The text.
    pub content: String,
    /// The decoded answer, if a schema was given.
    pub value: Option<Value>,
    /// The tool calls that the model requests.
    pub tool_calls: Vec<ToolCall>,
    /// Why the answer ended: `stop`, `length`, `tool_calls`.
    pub finish_reason: String,
    /// The model that answered.
    pub model: String,
    /// The number of tokens in the request.
    pub input_tokens: i64,
    /// The number of tokens in the answer.
    pub output_tokens: i64,
}

/// A tool call that the model requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolCall {
    /// Identifies the call in the message that answers it.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments as JSON.
    pub arguments: String,
}

impl ChatResponse {
    fn of(answer: &Value) -> Self {
        let tokens = |name| {
            let usage = answer.get("usage");
            usage
                .and_then(|u| u.get(name))
                .and_then(Value::as_i64)
                .unwrap_or(0)
        };
        let calls = answer
            .get("tool_calls")
            .and_then(Value::as_list)
            .unwrap_or(&[]);
        ChatResponse {
            content: text(answer, "content"),
            value: answer.get("value").cloned(),
            tool_calls: calls
                .iter()
                .map(|c| ToolCall {
                    id: text(c, "id"),
                    name: text(c, "name"),
                    arguments: text(c, "arguments"),
                })
                .collect(),
            finish_reason: text(answer, "finish_reason"),
            model: text(answer, "model"),
            input_tokens: tokens("input_tokens"),
            output_tokens: tokens("output_tokens"),
        }
    }
}

fn text(map: &Value, name: &str) -> String {
    map.get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_and_its_answer() {
        let asked = ChatRequest::new()
            .system("short")
            .user("why?")
            .stream()
            .payload();
        assert_eq!(asked.get("stream"), Some(&Value::Bool(true)));
        let messages = asked.get("messages").and_then(Value::as_list).unwrap();
        assert_eq!(
            text(&messages[1], "role") + &text(&messages[1], "content"),
            "userwhy?"
        );

        let usage = Value::map([
            ("input_tokens", Value::Int(7)),
            ("output_tokens", Value::Int(3)),
        ]);
        let call = Value::map([
            ("id", "1".into()),
            ("name", "look".into()),
            ("arguments", "{}".into()),
        ]);
        let answer = Value::map([
            ("content", "because".into()),
            ("usage", usage),
            ("tool_calls", Value::list([call])),
        ]);
        let got = ChatResponse::of(&answer);
        assert_eq!(
            (got.content.as_str(), got.input_tokens, got.output_tokens),
            ("because", 7, 3)
        );
        assert_eq!(got.tool_calls[0].name, "look");
        assert_eq!(ChatResponse::of(&Value::Int(1)), ChatResponse::default());
    }
}
