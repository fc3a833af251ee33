//! Joke has a model make a joke, and another call of it judge the joke.

use weft::llm::{ChatRequest, llm};
use weft::prelude::*;

/// Says what the joke is about.
#[derive(StartEvent)]
struct StartEvent {
    topic: String,
}

/// The joke; the stream shows it, too.
#[derive(Event)]
struct JokeEvent {
    joke: String,
}

#[step(streams = [JokeEvent])]
fn invent(ctx: &Context, ev: StartEvent) -> Result<JokeEvent> {
    let request = format!("Write your best joke about {}.", ev.topic);
    let joke = ctx.llm("llm").chat(&ChatRequest::new().user(request))?;
    let joke = JokeEvent { joke: joke.content };
    ctx.stream(&joke)?;
    Ok(joke)
}

#[step]
fn judge(ctx: &Context, ev: JokeEvent) -> Result<Stop> {
    let request = format!(
        "Give a thorough analysis and critique of the following joke: {}",
        ev.joke
    );
    let critique = ctx.llm("llm").chat(&ChatRequest::new().user(request))?;
    Ok(Stop::new(critique.content))
}

workflow!(
    "joke-rust",
    resources = [llm("llm").description("the model that makes jokes")],
    steps = [invent, judge],
);

#[cfg(test)]
mod tests {
    use super::*;
    use weft::testing::Session;

    /// Replaces the resource: it repeats the question.
    fn model(_: &str, request: Value) -> Result<Value> {
        let messages = request.get("messages").and_then(Value::as_list);
        let asked = messages.and_then(|m| m[0].get("content")).cloned();
        let content = format!("on: {}", asked.as_ref().and_then(Value::as_str).unwrap());
        Ok(Value::map([("content", content.into())]))
    }

    #[test]
    fn the_joke_is_judged() {
        let topic = "pirates".into();
        let session = Session::new(&WORKFLOW).resource("llm", model);
        let run = session.run(&StartEvent { topic }).unwrap();
        let want = "on: Give a thorough analysis and critique of the following joke: \
                    on: Write your best joke about pirates.";
        assert_eq!(run.result::<String>().unwrap(), want);
        assert_eq!(run.streamed().len(), 1);
    }
}
