//! The life of a run: its attempts, their results, and its end.

use super::engine::{Invocation, Outcome, World};
use super::retry::Failure;
use super::wait::Pending;
use crate::error::Error;
use crate::event::{EventKind, EventType};
use crate::failure::{Exception, StepFailed};
use crate::value::Raw;

impl World {
    /// Whether the run has its result, or has failed.
    pub fn is_over(&self) -> bool {
        self.stop.is_some() || self.failed.is_some()
    }

    /// Whether something in the run can continue.
    pub fn is_ready(&self) -> bool {
        let over = self.is_over();
        !over && (!self.queue.is_empty() || self.is_cleaned()) || over && !self.told
    }

    /// Whether no invocation is running, waiting or to be retried.
    fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.waiters.is_empty() && self.delayed.is_empty()
    }

    /// Whether the clean-up is complete.
    fn is_cleaned(&self) -> bool {
        self.ending.is_some() && self.is_empty()
    }

    /// Ends a run whose clean-up is complete, or in which nothing is left to do.
    pub fn conclude(&mut self) {
        if self.is_over() || !self.is_empty() {
            return;
        }
        self.failed = match self.ending.take() {
            None if self.is_fed() => return,
            None => Some(self.stalled()),
            ending => ending,
        };
    }

    /// Whether a step accepts an external event: the answer of a person, or a type that
    /// no step emits.
    fn is_fed(&self) -> bool {
        let given = |kind: &'static EventType| {
            let mut gives = self
                .steps()
                .iter()
                .flat_map(|s| s.output.types.iter().chain(s.emits));
            gives.any(|t| t.is_one_of(&[kind]).is_some() || kind.is_one_of(&[t]).is_some())
        };
        let mut accepted = self.steps().iter().flat_map(|s| s.input.types).copied();
        accepted.any(|kind| match kind.kind() {
            EventKind::HumanResponse => true,
            EventKind::Start | EventKind::Stop => false,
            _ => kind.name() != "StepFailedEvent" && !given(kind),
        })
    }

    fn stalled(&self) -> Error {
        let why = match (self.silent, self.last) {
            (Some(step), _) => format!("step {step} has returned no event"),
            (None, Some(step)) => format!("nothing follows from what step {step} has returned"),
            (None, None) => "no step has taken the start event".to_owned(),
        };
        let message = format!("nothing is left to do, and the run has no result: {why}");
        Error::new("stalled", message)
    }

    /// Whether the run is over and this was not reported yet. Its children end with it.
    pub fn has_news(&mut self) -> bool {
        if !self.is_over() || self.told {
            return false;
        }
        self.told = true;
        self.forget();
        true
    }

    /// Drops everything in progress.
    pub fn forget(&mut self) {
        self.queue.clear();
        self.waiters.clear();
        self.delayed.clear();
        self.kept.clear();
        self.joins.clear();
        self.buffers.clear();
        self.deadline = None;
        for child in &self.children {
            if let Ok(mut child) = child.try_borrow_mut()
                && !child.is_over()
            {
                child.clean_up(Error::new("cancelled", "the parent has ended"));
            }
        }
    }

    /// Begins an attempt, or continues one that has waited.
    pub fn begin(&mut self, invocation: &mut Invocation) {
        let now = self.place.root.borrow().clock;
        if invocation.number == 0 {
            self.invocations += 1;
            invocation.number = self.invocations;
            invocation.began = now;
        }
        if invocation.due > 0 || invocation.attempt == 0 {
            invocation.attempt += 1;
            invocation.due = 0;
            invocation.tried = now;
        }
    }

    /// Processes the result of an invocation.
    pub fn came(&mut self, invocation: Invocation, outcome: Outcome) {
        self.last = Some(self.steps()[invocation.step].name);
        match outcome {
            Outcome::Waits => self.waiters.push(invocation),
            Outcome::Failed(error) => self.fail(invocation, error),
            Outcome::Gave(output) => match self.take(&invocation, &output) {
                Ok(()) => self.release(&invocation.list),
                Err(error) => self.fail(invocation, error),
            },
        }
    }

    /// Retries an invocation that has failed, passes its failure to the step that catches
    /// it, or ends the run with it.
    pub fn fail(&mut self, mut invocation: Invocation, error: Error) {
        let now = self.place.root.borrow().clock;
        let elapsed = now - invocation.began;
        let extras = self.steps()[invocation.step].extras;
        let again = extras.and_then(|e| e.retry).and_then(|policy| {
            let failure = Failure {
                error: &error,
                attempt: invocation.attempt,
                elapsed,
            };
            failure.wait_before_next(&policy(), &mut self.place.root.borrow_mut())
        });
        if let Some(wait) = again {
            invocation.record.clear();
            invocation.printed = 0;
            invocation.pending = Pending::Nothing;
            invocation.last_error = Some(error);
            invocation.due = now.saturating_add(wait).max(1);
            self.delayed.push(invocation);
            return;
        }
        match self.catcher(invocation.step, &invocation.lineage) {
            Some(catcher) if self.ending.is_none() => {
                let step = self.steps()[invocation.step].name;
                self.enqueue_failure(catcher, Some(&invocation), step, &error, elapsed);
            }
            _ if self.ending.is_some() => {}
            _ => self.failed = Some(error),
        }
        self.release(&invocation.list);
    }

    /// Invokes a catching step with the failure of an invocation, or of the run.
    pub fn enqueue_failure(
        &mut self,
        catcher: usize,
        failed: Option<&Invocation>,
        step: &str,
        error: &Error,
        elapsed: i64,
    ) {
        let failure = StepFailed {
            step_name: step.to_owned(),
            exception: Exception {
                exception_type: error.code().to_owned(),
                exception_message: error.message().to_owned(),
            },
            attempts: failed.map_or(0, |i| i.attempt),
            elapsed_seconds: elapsed as f64 / 1e9,
            input_event: failed.and_then(|i| i.shown().ok()),
        };
        let list = failed.and_then(|i| i.list.clone());
        let mut lineage = failed.map(|i| i.lineage.clone()).unwrap_or_default();
        *lineage.entry(catcher).or_default() += 1;
        let body = Raw::of(&failure).unwrap_or_default();
        let event = self.event("StepFailedEvent", body, list.clone(), lineage.clone());
        self.enqueue(Invocation {
            step: catcher,
            trigger: vec![event],
            list,
            lineage,
            ..Invocation::default()
        });
    }
}
