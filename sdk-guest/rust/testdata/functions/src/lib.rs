//! Functions in Rust, for a test that mixes them with those of a plugin in Go.

use weft::prelude::*;

#[derive(State, Default)]
struct State {
    #[weft(default)]
    rusty: i64,
}

/// Says louder what came before.
#[function]
fn shout(ctx: &Context<State>, input: StepInput) -> Result<StepOutput> {
    ctx.edit(|s| s.rusty += 1)?;
    let said = match input.previous_text() {
        "" => input.text(),
        before => before,
    };
    Ok(StepOutput::content(said.to_uppercase()))
}

/// Chooses the last choice.
#[function]
fn last(_: &Context<State>, input: StepInput) -> Result<StepOutput> {
    let names = input.step_choices;
    Ok(StepOutput::content(
        names.last().cloned().unwrap_or_default(),
    ))
}

/// Counts the outputs before it that went well.
#[function]
fn good(_: &Context<State>, input: StepInput) -> Result<StepOutput> {
    let n = input.previous_step_outputs.values().filter(|o| o.success);
    Ok(StepOutput::stop_with(n.count() as i64))
}

workflow!(
    "functions-rust",
    part,
    state = State,
    steps = [shout, last, good]
);
