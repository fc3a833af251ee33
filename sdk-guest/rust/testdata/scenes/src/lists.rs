//! Lists of events, and what collects them.

use weft::prelude::*;

use crate::State;

/// Begins a list.
#[derive(Event)]
pub(crate) struct FanEvent {
    pub n: i64,
    pub text: String,
}

/// Begins lists in a list.
#[derive(Event)]
pub(crate) struct NestEvent {
    pub n: i64,
}

/// Begins a list of which two are enough.
#[derive(Event)]
pub(crate) struct DealEvent {
    pub n: i64,
}

/// Begins two that are joined.
#[derive(Event)]
pub(crate) struct JoinEvent {
    pub n: i64,
    pub text: String,
}

/// Is one of many that are worked on side by side.
#[derive(Event)]
pub(crate) struct PartEvent {
    i: i64,
    text: String,
}

/// Is what comes of a part.
#[derive(Event)]
pub(crate) struct PieceEvent {
    i: i64,
}

/// Is one of many that have many in them.
#[derive(Event)]
pub(crate) struct RowEvent {
    row: i64,
    n: i64,
}

/// Is one in a row.
#[derive(Event)]
pub(crate) struct CellEvent {
    v: i64,
}

/// Is what comes of a row.
#[derive(Event)]
pub(crate) struct SumEvent {
    sum: i64,
}

/// Is one of many of which two are enough.
#[derive(Event)]
pub(crate) struct CardEvent {
    v: i64,
}

/// Is joined with a [`MoonEvent`].
#[derive(Event)]
pub(crate) struct SunEvent {
    n: i64,
}

/// Is joined with a [`SunEvent`].
#[derive(Event)]
pub(crate) struct MoonEvent {
    text: String,
}

#[step]
pub(crate) fn fan(_: &Context<State>, ev: FanEvent) -> Result<Vec<PartEvent>> {
    let text = ev.text;
    let part = |i| PartEvent {
        i,
        text: text.clone(),
    };
    Ok((0..ev.n).map(part).collect())
}

#[step]
pub(crate) fn nest(_: &Context<State>, ev: NestEvent) -> Result<Vec<RowEvent>> {
    let n = ev.n;
    Ok((0..n).map(|row| RowEvent { row, n }).collect())
}

#[step]
pub(crate) fn deal(_: &Context<State>, ev: DealEvent) -> Result<Vec<CardEvent>> {
    Ok((0..ev.n).map(|v| CardEvent { v }).collect())
}

#[step(emits = [MoonEvent])]
pub(crate) fn both(ctx: &Context<State>, ev: JoinEvent) -> Result<SunEvent> {
    if !ev.text.is_empty() {
        ctx.send(&MoonEvent { text: ev.text })?; // else it is half of a join
    }
    Ok(SunEvent { n: ev.n })
}

/// Gives a piece, gives none, or fails: once or for good.
#[step(workers = 2, retry = fixed("1ms").attempts(2))]
pub(crate) fn part(ctx: &Context<State>, ev: PartEvent) -> Result<Option<PieceEvent>> {
    let first = ctx.run().attempt == 1;
    match ev.text.as_str() {
        "skip" if ev.i == 1 => Ok(None),
        "fail" if ev.i == 1 => Err(Error::new("part", "part 1 fails")),
        "flaky" if ev.i == 1 && first => Err(Error::new("part", "part 1 fails")),
        _ => Ok(Some(PieceEvent { i: ev.i * 10 })),
    }
}

/// Gives a piece in the place of one that failed.
#[step(catches = [part])]
pub(crate) fn mend(_: &Context<State>, ev: StepFailed) -> Result<PieceEvent> {
    let i = -(ev.attempts as i64);
    Ok(PieceEvent { i })
}

#[step]
pub(crate) fn gather(_: &Context<State>, all: Vec<PieceEvent>) -> Result<Stop> {
    let mut numbers: Vec<i64> = all.iter().map(|piece| piece.i).collect();
    numbers.sort_unstable();
    Ok(Stop::new(numbers))
}

#[step]
pub(crate) fn row(_: &Context<State>, ev: RowEvent) -> Result<Vec<CellEvent>> {
    let cell = |i| CellEvent {
        v: ev.row * ev.n + i,
    };
    Ok((0..ev.n).map(cell).collect())
}

#[step]
pub(crate) fn cells(_: &Context<State>, all: Vec<CellEvent>) -> Result<SumEvent> {
    let sum = all.iter().map(|cell| cell.v).sum();
    Ok(SumEvent { sum })
}

#[step]
pub(crate) fn total(_: &Context<State>, all: Vec<SumEvent>) -> Result<Stop> {
    let sum: i64 = all.iter().map(|row| row.sum).sum();
    Ok(Stop::new((all.len(), sum)))
}

#[step(take = 2)]
pub(crate) fn hand(_: &Context<State>, cards: Vec<CardEvent>) -> Result<Stop> {
    Ok(Stop::new(cards.len()))
}

#[step]
pub(crate) fn sky(_: &Context<State>, both: (SunEvent, MoonEvent)) -> Result<Stop> {
    Ok(Stop::new((both.0.n, both.1.text)))
}
