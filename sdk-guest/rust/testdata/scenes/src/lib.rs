//! Scenes does one of many things that a step can do, so that the SDKs of several
//! languages can be compared: testdata/plugins/scenes of the project is the same in
//! Go.

mod call;
mod kv;
mod lists;
#[cfg(test)]
mod native;
mod state;

use weft::kv::kv;
use weft::prelude::*;

use lists::{DealEvent, FanEvent, JoinEvent, NestEvent};

/// Says what to do.
#[derive(StartEvent)]
struct StartEvent {
    what: String,
    #[weft(default)]
    n: i64,
    #[weft(default)]
    text: String,
}

/// Something that calls do.
#[derive(Event)]
struct CallEvent {
    what: String,
    n: i64,
    text: String,
}

/// Something that happens as a whole.
#[derive(Event)]
struct WorkEvent {
    fail: bool,
}

/// Something that fails.
#[derive(Event)]
struct FragileEvent {
    text: String,
}

/// Is measured.
#[derive(Event)]
struct ItemEvent {
    name: String,
}

/// An item with a size.
#[derive(Event)]
#[weft(extends = ItemEvent)]
struct BoxEvent {
    name: String,
    size: i64,
}

/// Is collected with a [`RightEvent`].
#[derive(Event)]
struct LeftEvent {
    n: i64,
}

/// Is collected with a [`LeftEvent`].
#[derive(Event)]
struct RightEvent {
    text: String,
}

/// Comes after work that succeeded.
#[derive(Event)]
struct DoneEvent;

/// Is for the stream.
#[derive(Event)]
struct ShownEvent {
    text: String,
}

/// Is waited for.
#[derive(Event)]
struct TickEvent {
    n: i64,
}

/// A tick that comes with words.
#[derive(Event)]
#[weft(extends = TickEvent)]
struct LoudTickEvent {
    n: i64,
    text: String,
}

/// Begins a wait for ticks of all kinds.
#[derive(Event)]
struct ListenEvent;

/// Asks a person.
#[derive(InputRequiredEvent)]
struct InputRequiredEvent {
    prefix: String,
}

/// A person's answer.
#[derive(HumanResponseEvent)]
struct HumanResponseEvent {
    #[allow(dead_code)]
    #[weft(default = "manager")]
    role: String,
    approved: bool,
}

/// The session's.
#[derive(State, Default)]
struct State {
    count: i64,
    log: Vec<String>,
}

#[derive(Events)]
enum Next {
    Call(CallEvent),
    Work(WorkEvent),
    Fragile(FragileEvent),
    Box(BoxEvent),
    Listen(ListenEvent),
    Right(RightEvent),
    Fan(FanEvent),
    Nest(NestEvent),
    Deal(DealEvent),
    Join(JoinEvent),
}

#[step(emits = [LeftEvent])]
fn begin(ctx: &Context<State>, ev: StartEvent) -> Result<Next> {
    let StartEvent { what, n, text } = ev;
    Ok(match what.as_str() {
        "work" => Next::Work(WorkEvent { fail: n > 0 }),
        "fragile" => Next::Fragile(FragileEvent { text }),
        "box" => Next::Box(BoxEvent {
            name: text,
            size: n,
        }),
        "listen" => Next::Listen(ListenEvent),
        "pair" => {
            ctx.send_to("pair", &LeftEvent { n })?;
            Next::Right(RightEvent { text })
        }
        "fan" => Next::Fan(FanEvent { n, text }),
        "nest" => Next::Nest(NestEvent { n }),
        "deal" => Next::Deal(DealEvent { n }),
        "join" => Next::Join(JoinEvent { n, text }),
        _ => Next::Call(CallEvent { what, n, text }),
    })
}

/// Shows as a whole or not at all.
#[step(atomic, emits = [DoneEvent], streams = [ShownEvent])]
fn work(ctx: &Context<State>, ev: WorkEvent) -> Result<()> {
    ctx.edit(|s| {
        s.count += 10;
        s.log.push("worked".into());
    })?;
    let text = "worked".into();
    ctx.stream(&ShownEvent { text })?;
    ctx.send(&DoneEvent)?;
    let sleep = ctx.sleep(std::time::Duration::from_secs(1));
    if ev.fail {
        let refused = sleep.err().map_or(String::new(), |e| e.code().to_owned());
        let message = format_args!("a sleep is refused by {refused}");
        return Err(Error::new("undone", message).not_retryable());
    }
    Ok(())
}

#[step]
fn done(ctx: &Context<State>, _: DoneEvent) -> Result<Stop> {
    Ok(Stop::new(ctx.state()?))
}

#[step(retry = fixed("1ms").and(any_of(&[attempts(2), give_up_after("1h")])))]
fn fragile(_: &Context<State>, ev: FragileEvent) -> Result<Stop> {
    Err(Error::new("fragile", ev.text))
}

/// What is known of a failure.
#[derive(Data)]
struct Rescued {
    step: String,
    code: String,
    message: String,
    attempts: u64,
    input: Option<Value>,
    state: State,
}

#[step(catches = [work, "fragile"], max_recoveries = 2)]
fn rescue(ctx: &Context<State>, ev: StepFailed) -> Result<Stop> {
    Ok(Stop::new(Rescued {
        step: ev.step_name,
        code: ev.exception.exception_type,
        message: ev.exception.exception_message,
        attempts: ev.attempts,
        input: ev.input_event,
        state: ctx.state()?,
    }))
}

/// Runs when the run is cancelled.
#[step(catches = [cancelled, timeout], streams = [ShownEvent])]
fn clean(ctx: &Context<State>, ev: StepFailed) -> Result<()> {
    let kind = ev.exception.exception_type;
    let text = format!("cleaned: {}{kind}", ev.step_name);
    ctx.stream(&ShownEvent { text })
}

#[step(accept_subtypes)]
fn measure(_: &Context<State>, ev: ItemEvent) -> Result<Stop> {
    Ok(Stop::new(ev.name.len()))
}

#[step(waits = [TickEvent], streams = [LoudTickEvent], accept_subtypes)]
fn listen(ctx: &Context<State>, _: ListenEvent) -> Result<Stop> {
    Ok(Stop::new(ctx.wait_for::<TickEvent>().event()?.n))
}

#[derive(Events)]
enum Side {
    Left(LeftEvent),
    Right(RightEvent),
}

/// Waits until both are there; what comes before is kept.
#[step]
fn pair(ctx: &Context<State>, _: Side) -> Result<Option<Stop>> {
    let both = ctx.collect_in::<(RightEvent, LeftEvent)>("pair")?;
    Ok(both.map(|(right, left)| Stop::new((left.n, right.text))))
}

workflow!(
    "scenes-rust",
    state = State,
    timeout = none,
    resources = [http("web").optional(), kv("shelf").optional()],
    steps = [
        begin,
        pair,
        call::call,
        work,
        done,
        fragile,
        rescue,
        clean,
        listen,
        measure,
        lists::fan,
        lists::nest,
        lists::deal,
        lists::both,
        lists::part,
        lists::mend,
        lists::gather,
        lists::row,
        lists::cells,
        lists::total,
        lists::hand,
        lists::sky
    ],
);
