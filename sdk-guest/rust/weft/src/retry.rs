//! Rules for trying a failed step again, for `#[step(retry = ...)]`.
//!
//! A policy says how long to wait, and may say when to try again at all and
//! when to give up. What it does not say is: after every error, 5 s apart, at
//! most 3 attempts in all. A step without rules has one attempt.
//!
//! ```
//! use weft::prelude::*;
//! # #[derive(StartEvent)] struct StartEvent { url: String }
//!
//! #[step(retry = exponential("1s", 2.0, "1m").attempts(5).on_codes(&["busy"]))]
//! fn fetch(_: &Context, ev: StartEvent) -> Result<Stop> {
//!     Err(Error::new("busy", format_args!("{} is busy", ev.url)))
//! }
//! ```
//!
//! Durations are texts such as `"10ms"`, `"30s"`, `"5m"` and `"24h"`.

use crate::duration::parse;
use crate::value::Value;

/// A retry policy.
#[derive(Clone, Copy)]
pub struct Retry {
    wait: Option<Wait>,
    when: Option<When>,
    stop: Option<Stop>,
}

#[derive(Clone, Copy)]
enum Wait {
    Fixed(u64),
    Incrementing(u64, u64, u64),
    Exponential(u64, f64, u64),
    Random(u64, u64),
    ExponentialJitter(u64, f64, u64, u64),
}

#[derive(Clone, Copy)]
enum When {
    Codes(&'static [&'static str]),
    Message(&'static str),
}

#[derive(Clone, Copy)]
enum Stop {
    Attempts(u64),
    Delay(u64),
}

const NOTHING: Retry = Retry {
    wait: None,
    when: None,
    stop: None,
};

const fn waiting(wait: Wait) -> Retry {
    Retry {
        wait: Some(wait),
        ..NOTHING
    }
}

/// Waits the same time before each attempt.
pub const fn fixed(duration: &str) -> Retry {
    waiting(Wait::Fixed(parse(duration)))
}

/// Waits `start`, then `step` longer each time, at most `max`.
pub const fn incrementing(start: &str, step: &str, max: &str) -> Retry {
    waiting(Wait::Incrementing(parse(start), parse(step), parse(max)))
}

/// Waits `unit` times `base` to the power of the attempts before, at most `max`.
pub const fn exponential(unit: &str, base: f64, max: &str) -> Retry {
    waiting(Wait::Exponential(parse(unit), base, parse(max)))
}

/// Waits a random time of at least `min` and at most `max`.
pub const fn random_wait(min: &str, max: &str) -> Retry {
    waiting(Wait::Random(parse(min), parse(max)))
}

/// Waits as [`exponential`], and up to `jitter` on top.
pub const fn exponential_jitter(unit: &str, base: f64, max: &str, jitter: &str) -> Retry {
    waiting(Wait::ExponentialJitter(
        parse(unit),
        base,
        parse(max),
        parse(jitter),
    ))
}

/// Gives up after n attempts in all; waits as by default.
pub const fn attempts(n: u64) -> Retry {
    NOTHING.attempts(n)
}

impl Retry {
    /// Gives up after n attempts in all.
    pub const fn attempts(self, n: u64) -> Self {
        Retry {
            stop: Some(Stop::Attempts(n)),
            ..self
        }
    }

    /// Makes no attempt that would start later than this after the first.
    pub const fn give_up_after(self, duration: &str) -> Self {
        Retry {
            stop: Some(Stop::Delay(parse(duration))),
            ..self
        }
    }

    /// Tries again after errors with one of the codes only.
    pub const fn on_codes(self, codes: &'static [&'static str]) -> Self {
        Retry {
            when: Some(When::Codes(codes)),
            ..self
        }
    }

    /// Tries again after errors only whose message contains the text.
    pub const fn on_message(self, text: &'static str) -> Self {
        Retry {
            when: Some(When::Message(text)),
            ..self
        }
    }

    /// The policy as the manifest has it.
    pub(crate) fn manifest(&self) -> Value {
        let wait = self.wait.map(|wait| {
            let (key, value) = match wait {
                Wait::Fixed(d) => ("fixed", d.into()),
                Wait::Incrementing(start, step, max) => {
                    ("incrementing", Value::list([start, step, max]))
                }
                Wait::Exponential(unit, base, max) => {
                    let parts: [Value; 3] = [unit.into(), base.into(), max.into()];
                    ("exponential", Value::list(parts))
                }
                Wait::Random(min, max) => ("random", Value::list([min, max])),
                Wait::ExponentialJitter(unit, base, max, jitter) => {
                    let parts: [Value; 4] = [unit.into(), base.into(), max.into(), jitter.into()];
                    ("exponential_jitter", Value::list(parts))
                }
            };
            ("wait", Value::map([(key, value)]))
        });
        let when = self.when.map(|when| {
            let (key, value) = match when {
                When::Codes(codes) => ("code", Value::list(codes.iter().copied())),
                When::Message(text) => ("message", text.into()),
            };
            ("when", Value::map([(key, value)]))
        });
        let stop = self.stop.map(|stop| {
            let (key, value) = match stop {
                Stop::Attempts(n) => ("attempts", n.into()),
                Stop::Delay(d) => ("delay", d.into()),
            };
            ("stop", Value::map([(key, value)]))
        });
        Value::map([wait, when, stop].into_iter().flatten())
    }
}
