//! Rules for retrying a failed step, for `#[step(retry = ...)]`.
//!
//! A policy says how long to wait, and may say when to retry and when to give up. The
//! defaults are: after every error, 5 s apart, at most 3 attempts in all. A step without
//! a policy has one attempt.
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
//! Durations are texts such as `"10ms"`, `"30s"`, `"5m"` and `"24h"`. Every rule is also
//! a policy, and [`Retry::and`] combines two policies: all of their conditions must hold,
//! and the first rule to give up that applies decides. Groups combine rules differently:
//!
//! ```
//! use weft::retry::*;
//!
//! const POLICY: Retry = chain(&[fixed("0s"), sum(&[fixed("1s"), random_wait("0s", "1s")])])
//!     .and(any_of(&[on_codes(&["busy"]), not(&on_message("quota"))]))
//!     .attempts(5)
//!     .give_up_after("1h");
//! ```
//!
//! An error marked by [`not_retryable`](crate::Error::not_retryable) is not retried
//! whatever the conditions say.

use crate::data;
use crate::duration::parse;
use crate::value::Value;

/// A retry policy: a set of rules.
#[derive(Clone, Copy)]
pub struct Retry {
    rules: [Option<Rule>; MOST],
}

/// The maximum number of rules in a policy.
const MOST: usize = 8;

#[derive(Clone, Copy)]
enum Rule {
    When(When),
    Wait(Wait),
    Stop(Stop),
}

#[derive(Clone, Copy)]
enum When {
    Always,
    Never,
    Codes(&'static [&'static str]),
    Message(&'static str),
    Not(&'static Retry),
    Any(&'static [Retry]),
    All(&'static [Retry]),
}

#[derive(Clone, Copy)]
enum Wait {
    Fixed(u64),
    Incrementing(u64, u64, u64),
    Exponential(u64, f64, u64),
    Random(u64, u64),
    ExponentialJitter(u64, f64, u64, u64),
    Chain(&'static [Retry]),
    Sum(&'static [Retry]),
}

#[derive(Clone, Copy)]
enum Stop {
    Attempts(u64),
    Delay(u64),
    Never,
    Any(&'static [Retry]),
    All(&'static [Retry]),
}

/// The default policy: after every error, 5 s apart, at most 3 attempts in all.
pub const fn defaults() -> Retry {
    Retry {
        rules: [None; MOST],
    }
}

const fn when(rule: When) -> Retry {
    defaults().with(Rule::When(rule))
}

const fn wait(rule: Wait) -> Retry {
    defaults().with(Rule::Wait(rule))
}

const fn stop(rule: Stop) -> Retry {
    defaults().with(Rule::Stop(rule))
}

/// Waits the same time before each attempt.
pub const fn fixed(duration: &str) -> Retry {
    wait(Wait::Fixed(parse(duration)))
}

/// Waits `start`, then `step` longer each time, at most `max`.
pub const fn incrementing(start: &str, step: &str, max: &str) -> Retry {
    wait(Wait::Incrementing(parse(start), parse(step), parse(max)))
}

/// Waits `unit` times `base` to the power of the number of earlier retries,
/// at most `max`.
pub const fn exponential(unit: &str, base: f64, max: &str) -> Retry {
    wait(Wait::Exponential(parse(unit), base, parse(max)))
}

/// Waits a random time between `min` and `max`.
pub const fn random_wait(min: &str, max: &str) -> Retry {
    wait(Wait::Random(parse(min), parse(max)))
}

/// Waits like [`exponential`], plus a random time of at most `jitter`.
pub const fn exponential_jitter(unit: &str, base: f64, max: &str, jitter: &str) -> Retry {
    wait(Wait::ExponentialJitter(
        parse(unit),
        base,
        parse(max),
        parse(jitter),
    ))
}

/// Waits by the first rule before the second attempt, by the second rule before the
/// third, and so on; the last rule is used for all further attempts.
pub const fn chain(waits: &'static [Retry]) -> Retry {
    assert!(
        matches!(kind(waits), Rule::Wait(_)),
        "a chain holds rules for how long to wait"
    );
    wait(Wait::Chain(waits))
}

/// Waits as long as all the rules together.
pub const fn sum(waits: &'static [Retry]) -> Retry {
    assert!(
        matches!(kind(waits), Rule::Wait(_)),
        "a sum holds rules for how long to wait"
    );
    wait(Wait::Sum(waits))
}

/// Retries after every error, as a policy without a condition does.
pub const fn always() -> Retry {
    when(When::Always)
}

/// Does not retry after any error.
pub const fn never() -> Retry {
    when(When::Never)
}

/// Retries only after errors with one of the codes.
pub const fn on_codes(codes: &'static [&'static str]) -> Retry {
    when(When::Codes(codes))
}

/// Retries only after errors whose message contains the text.
pub const fn on_message(text: &'static str) -> Retry {
    when(When::Message(text))
}

/// Retries if the condition does not hold.
pub const fn not(condition: &'static Retry) -> Retry {
    assert!(
        matches!(condition.only(), Rule::When(_)),
        "`not` is for a condition, such as on_codes(&[\"busy\"])"
    );
    when(When::Not(condition))
}

/// Gives up after n attempts in all, with the default wait.
pub const fn attempts(n: u64) -> Retry {
    stop(Stop::Attempts(n))
}

/// Gives up at a failure that long or longer after the first attempt started.
pub const fn give_up_after(duration: &str) -> Retry {
    stop(Stop::Delay(parse(duration)))
}

/// Never gives up.
pub const fn forever() -> Retry {
    stop(Stop::Never)
}

/// Combines conditions, of which at least one must hold, or rules to give up, of which at
/// least one must apply.
pub const fn any_of(rules: &'static [Retry]) -> Retry {
    match kind(rules) {
        Rule::When(_) => when(When::Any(rules)),
        Rule::Stop(_) => stop(Stop::Any(rules)),
        Rule::Wait(_) => panic!("how long to wait is one rule: join several by sum or chain"),
    }
}

/// Combines conditions, which must all hold, or rules to give up, which must all apply.
pub const fn all_of(rules: &'static [Retry]) -> Retry {
    match kind(rules) {
        Rule::When(_) => when(When::All(rules)),
        Rule::Stop(_) => stop(Stop::All(rules)),
        Rule::Wait(_) => panic!("how long to wait is one rule: join several by sum or chain"),
    }
}

/// The first of several rules, which must all be of the same kind.
const fn kind(rules: &[Retry]) -> Rule {
    assert!(!rules.is_empty(), "a group of rules is empty: give it some");
    let first = rules[0].only();
    let mut i = 1;
    while i < rules.len() {
        let same = matches!(
            (first, rules[i].only()),
            (Rule::When(_), Rule::When(_))
                | (Rule::Wait(_), Rule::Wait(_))
                | (Rule::Stop(_), Rule::Stop(_))
        );
        assert!(
            same,
            "a group holds rules of one kind: conditions, waits, or rules to give up"
        );
        i += 1;
    }
    first
}

impl Retry {
    /// Gives up after n attempts in all.
    pub const fn attempts(self, n: u64) -> Self {
        self.with(Rule::Stop(Stop::Attempts(n)))
    }

    /// Gives up at a failure that long or longer after the first attempt started.
    pub const fn give_up_after(self, duration: &str) -> Self {
        self.with(Rule::Stop(Stop::Delay(parse(duration))))
    }

    /// Retries only after errors with one of the codes.
    pub const fn on_codes(self, codes: &'static [&'static str]) -> Self {
        self.with(Rule::When(When::Codes(codes)))
    }

    /// Retries only after errors whose message contains the text.
    pub const fn on_message(self, text: &'static str) -> Self {
        self.with(Rule::When(When::Message(text)))
    }

    /// Adds the rules of another policy to these.
    pub const fn and(mut self, other: Retry) -> Self {
        let mut i = 0;
        while i < MOST {
            if let Some(rule) = other.rules[i] {
                self = self.with(rule);
            }
            i += 1;
        }
        self
    }

    const fn with(mut self, rule: Rule) -> Self {
        let mut i = 0;
        while let Some(other) = self.rules[i] {
            assert!(
                !matches!((other, rule), (Rule::Wait(_), Rule::Wait(_))),
                "two rules for how long to wait: keep one, or join them by sum or chain"
            );
            i += 1;
            assert!(i < MOST, "too many rules side by side: at most 8");
        }
        self.rules[i] = Some(rule);
        self
    }

    /// The policy's only rule.
    const fn only(&self) -> Rule {
        match (self.rules[0], self.rules[1]) {
            (Some(rule), None) => rule,
            _ => panic!("a group holds single rules: put rules side by side outside of it"),
        }
    }

    /// The policy in the form of the manifest.
    #[doc(hidden)]
    pub fn manifest(&self) -> Value {
        let (mut whens, mut waits, mut stops) = (Vec::new(), Vec::new(), Vec::new());
        for rule in self.rules.iter().flatten() {
            match rule {
                Rule::When(_) => whens.push(rule.manifest()),
                Rule::Wait(_) => waits.push(rule.manifest()),
                Rule::Stop(_) => stops.push(rule.manifest()),
            }
        }
        let mut policy = Value::map::<&str>([]);
        for (key, mut rules, join) in [
            ("when", whens, "all"),
            ("wait", waits, ""),
            ("stop", stops, "any"),
        ] {
            let rule = match rules.len() {
                0 => continue,
                1 => rules.remove(0),
                _ => Value::map([(join, rules.into())]),
            };
            data::set(&mut policy, key, rule);
        }
        policy
    }
}

impl Rule {
    fn manifest(&self) -> Value {
        let list = |parts: &[Value]| Value::list(parts.iter().cloned());
        let group = |rules: &[Retry]| Value::list(rules.iter().map(|r| r.only().manifest()));
        let (key, value) = match *self {
            Rule::When(When::Always) => return "always".into(),
            Rule::When(When::Never) | Rule::Stop(Stop::Never) => return "never".into(),
            Rule::When(When::Codes(codes)) => ("code", Value::list(codes.iter().copied())),
            Rule::When(When::Message(text)) => ("message", text.into()),
            Rule::When(When::Not(condition)) => ("not", condition.only().manifest()),
            Rule::When(When::Any(rules)) | Rule::Stop(Stop::Any(rules)) => ("any", group(rules)),
            Rule::When(When::All(rules)) | Rule::Stop(Stop::All(rules)) => ("all", group(rules)),
            Rule::Wait(Wait::Fixed(d)) => ("fixed", d.into()),
            Rule::Wait(Wait::Incrementing(start, step, max)) => {
                ("incrementing", Value::list([start, step, max]))
            }
            Rule::Wait(Wait::Exponential(unit, base, max)) => {
                ("exponential", list(&[unit.into(), base.into(), max.into()]))
            }
            Rule::Wait(Wait::Random(min, max)) => ("random", Value::list([min, max])),
            Rule::Wait(Wait::ExponentialJitter(unit, base, max, jitter)) => (
                "exponential_jitter",
                list(&[unit.into(), base.into(), max.into(), jitter.into()]),
            ),
            Rule::Wait(Wait::Chain(rules)) => ("chain", group(rules)),
            Rule::Wait(Wait::Sum(rules)) => ("sum", group(rules)),
            Rule::Stop(Stop::Attempts(n)) => ("attempts", n.into()),
            Rule::Stop(Stop::Delay(d)) => ("delay", d.into()),
        };
        Value::map([(key, value)])
    }
}
