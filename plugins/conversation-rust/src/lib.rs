//! Conversation talks with a model, and keeps the conversation in the session.

use weft::llm::{ChatRequest, llm};
use weft::prelude::*;

/// The next thing that the user says.
#[derive(StartEvent)]
struct StartEvent {
    message: String,
}

/// Carries it to the model.
#[derive(Event)]
struct AskEvent {
    message: String,
}

/// A turn: what was said, and the answer.
#[derive(Event)]
struct AnswerEvent {
    message: String,
    answer: String,
}

/// What somebody said.
#[derive(Data)]
struct Message {
    role: String,
    content: String,
}

impl Message {
    fn of(role: &str, content: String) -> Self {
        let role = role.into();
        Message { role, content }
    }
}

/// The conversation so far.
#[derive(State, Default)]
struct State {
    #[weft(default)]
    messages: Vec<Message>,
    #[weft(default)]
    turn_count: i64,
}

/// The run's result.
#[derive(Data, Debug, PartialEq)]
struct Response {
    response: String,
    turn_count: i64,
    message_count: usize,
}

#[step]
fn listen(_: &Context<State>, ev: StartEvent) -> Result<AskEvent> {
    if ev.message.is_empty() {
        return Err(Error::new("nothing_said", "message is empty").not_retryable());
    }
    let message = ev.message;
    Ok(AskEvent { message })
}

#[step]
fn ask(ctx: &Context<State>, ev: AskEvent) -> Result<AnswerEvent> {
    let mut request = ChatRequest::new().system("You are a helpful assistant.");
    for said in ctx.state()?.messages {
        request = request.message(&said.role, said.content);
    }
    let request = request.user(ev.message.as_str()).stream();
    let answer = ctx.llm("llm").chat(&request)?.content;
    let message = ev.message;
    Ok(AnswerEvent { message, answer })
}

#[step]
fn remember(ctx: &Context<State>, ev: AnswerEvent) -> Result<Stop> {
    // Both sides of the turn, or neither.
    let response = ctx.edit(|s| {
        s.messages.push(Message::of("user", ev.message.clone()));
        s.messages.push(Message::of("assistant", ev.answer.clone()));
        s.turn_count += 1;
        Response {
            response: ev.answer.clone(),
            turn_count: s.turn_count,
            message_count: s.messages.len(),
        }
    })?;
    Ok(Stop::new(response))
}

workflow!(
    "conversation-rust",
    state = State,
    resources = [llm("llm").description("the model that answers")],
    steps = [listen, ask, remember],
);

#[cfg(test)]
mod tests {
    use super::*;
    use weft::code;
    use weft::testing::Session;

    /// Replaces the resource: it answers with the number of messages that it received.
    fn model(_: &str, request: Value) -> Result<Value> {
        let messages = request.get("messages").and_then(Value::as_list).unwrap();
        let last = messages.last().and_then(|m| m.get("content"));
        match last.and_then(Value::as_str).unwrap() {
            "fail" => Err(Error::new(code::UNAVAILABLE, "nobody is there")),
            said => {
                let content = format!("{said} {}", messages.len());
                Ok(Value::map([("content", content.into())]))
            }
        }
    }

    fn says(message: &str) -> StartEvent {
        let message = message.into();
        StartEvent { message }
    }

    #[test]
    fn the_turns_are_remembered() {
        let session = Session::new(&WORKFLOW).resource("llm", model);
        for turn in 1..=3 {
            assert!(session.run(&says("fail")).is_err()); // a turn that fails leaves nothing
            let run = session.run(&says("hello")).unwrap();
            let want = Response {
                response: format!("hello {}", 2 * turn),
                turn_count: turn,
                message_count: 2 * turn as usize,
            };
            assert_eq!(run.result::<Response>().unwrap(), want);
        }
        assert!(session.run(&says("")).is_err());
    }
}
