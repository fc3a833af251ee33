//! Counter counts how often it has been run in a session: typed state, and an
//! edit that cannot lose an update.

use weft::prelude::*;

/// Starts a run. It needs no fields.
#[derive(StartEvent)]
struct StartEvent;

/// The state belongs to the session: it outlives the run.
#[derive(State, Default)]
struct State {
    /// runs so far
    #[weft(default)]
    count: i64,
}

#[step]
fn increment(ctx: &Context<State>, _: StartEvent) -> Result<Stop> {
    let count = ctx.edit(|s| {
        s.count += 1; // read, change and write, as if alone
        s.count
    })?;
    Ok(Stop::new(count))
}

workflow!("counter-rust", state = State, steps = [increment]);

#[cfg(test)]
mod tests {
    use weft::testing::Session;

    #[test]
    fn counts_the_runs_of_a_session() {
        let session = Session::new(&crate::WORKFLOW);
        for want in 1..=3 {
            let run = session.run(&()).unwrap();
            assert_eq!(run.result::<i64>().unwrap(), want);
        }
    }
}
