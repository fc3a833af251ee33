//! Whether and when a failed attempt is followed by another: what a server makes of
//! a step's retry policy, as the manifest has it.

use super::place::Root;
use crate::error::Error;
use crate::value::Value;

/// What counts where a policy leaves it open.
const WAIT: i64 = 5_000_000_000;
const ATTEMPTS: u64 = 3;

/// A failed attempt.
pub struct Failure<'a> {
    pub error: &'a Error,
    /// Which attempt it was, from 1.
    pub attempt: u64,
    /// Since the first attempt began, in nanoseconds.
    pub elapsed: i64,
}

impl Failure<'_> {
    /// How long to wait before the next attempt, in nanoseconds; none if there is to
    /// be none.
    pub fn wait_before_next(&self, policy: &Value, root: &mut Root) -> Option<i64> {
        let met = policy.get("when").is_none_or(|c| self.meets(c));
        let over = match policy.get("stop") {
            Some(rule) => self.stops(rule),
            None => self.attempt >= ATTEMPTS,
        };
        if self.error.retryable() == Some(false) || !met || over {
            return None;
        }
        Some(policy.get("wait").map_or(WAIT, |w| self.wait(w, root)))
    }

    fn meets(&self, condition: &Value) -> bool {
        let Some((key, value)) = only(condition) else {
            return condition.as_str() != Some("never");
        };
        let list = value.as_list().unwrap_or_default();
        match key {
            "code" => list.iter().any(|c| c.as_str() == Some(self.error.code())),
            "message" => self.error.message().contains(value.as_str().unwrap_or("")),
            "not" => !self.meets(value),
            "any" => list.iter().any(|c| self.meets(c)),
            _ => list.iter().all(|c| self.meets(c)),
        }
    }

    fn stops(&self, rule: &Value) -> bool {
        let Some((key, value)) = only(rule) else {
            return false; // "never"
        };
        let list = value.as_list().unwrap_or_default();
        match key {
            "attempts" => self.attempt >= value.as_i64().unwrap_or(i64::MAX).unsigned_abs(),
            "delay" => self.elapsed >= value.as_i64().unwrap_or(i64::MAX),
            "any" => list.iter().any(|r| self.stops(r)),
            _ => list.iter().all(|r| self.stops(r)),
        }
    }

    fn wait(&self, rule: &Value, root: &mut Root) -> i64 {
        let Some((key, value)) = only(rule) else {
            return WAIT;
        };
        let list = value.as_list().unwrap_or_default();
        let at = |i: usize| list.get(i).and_then(Value::as_f64).unwrap_or(0.0);
        let before = (self.attempt - 1) as f64;
        match key {
            "fixed" => value.as_i64().unwrap_or(WAIT),
            "incrementing" => capped(at(0) + at(1) * before, at(2)),
            "exponential" => capped(at(0) * at(1).powf(before), at(2)),
            "random" => at(0) as i64 + root.draw((at(1) - at(0)) as u64),
            "exponential_jitter" => {
                let grown = capped(at(0) * at(1).powf(before), at(2));
                grown.saturating_add(root.draw(at(3) as u64))
            }
            // The last rule goes on for all further attempts.
            "chain" => {
                let last = list.len().saturating_sub(1);
                let i = usize::try_from(self.attempt - 1).map_or(last, |i| i.min(last));
                list.get(i).map_or(WAIT, |rule| self.wait(rule, root))
            }
            _ => list
                .iter()
                .fold(0i64, |sum, rule| sum.saturating_add(self.wait(rule, root))),
        }
    }
}

/// The one entry of a rule that is a map.
fn only(rule: &Value) -> Option<(&str, &Value)> {
    let (key, value) = rule.as_map()?.iter().next()?;
    Some((key, value))
}

fn capped(time: f64, most: f64) -> i64 {
    if time < most {
        time as i64
    } else {
        most as i64 // too much, or not a number (0 * infinity)
    }
}
