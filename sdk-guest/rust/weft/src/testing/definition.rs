//! The checks of a whole workflow at its upload: how it begins and ends, and events that
//! no step emits or accepts.

use std::collections::BTreeSet;

use crate::event::{EventKind, EventType};
use crate::step::StepDecl;
use crate::workflow::Workflow;

/// Checks a workflow.
///
/// # Panics
///
/// If the workflow has errors. The message lists all of them.
pub fn check(workflow: &'static Workflow) {
    if workflow.is_part() {
        return; // the other plugins have the other steps
    }
    let c = Checker::of(workflow);
    let mut problems = c.ends();
    problems.extend(c.loose_ends());
    problems.extend(c.dead_ends());
    if !problems.is_empty() {
        panic!(
            "workflow {} cannot run: {}",
            workflow.name(),
            problems.join("\n")
        );
    }
}

struct Checker {
    steps: &'static [StepDecl],
    types: Vec<&'static EventType>,
}

impl Checker {
    fn of(workflow: &'static Workflow) -> Self {
        let mut types: Vec<&'static EventType> = Vec::new();
        let named = workflow.steps().iter().flat_map(StepDecl::types);
        for kind in named.flat_map(EventType::line) {
            if !types.iter().any(|t| t.name() == kind.name()) {
                types.push(kind);
            }
        }
        Checker {
            steps: workflow.steps(),
            types,
        }
    }

    /// The types that a step may emit: its declared types, and types that extend them.
    fn gives(&self, step: &StepDecl) -> Vec<&'static EventType> {
        let mut declared = step.output.types.to_vec();
        declared.extend(step.emits);
        let mut all = self.types.clone();
        all.retain(|t| t.is_one_of(&declared).is_some());
        all
    }

    fn is_one_of(step: &StepDecl, kind: &'static EventType, types: &[&'static EventType]) -> bool {
        let subtypes = step.extras.is_some_and(|e| e.rename.is_some());
        types.iter().any(|t| t.name() == kind.name()) || subtypes && kind.is_one_of(types).is_some()
    }

    fn takes(step: &StepDecl, kind: &'static EventType) -> bool {
        Self::is_one_of(step, kind, step.input.types)
    }

    fn waits(step: &StepDecl, kind: &'static EventType) -> bool {
        Self::is_one_of(step, kind, step.waits())
    }

    /// Whether events of the type come from outside.
    fn comes_from_outside(&self, kind: &'static EventType) -> bool {
        kind.name() == "StepFailedEvent"
            || matches!(kind.kind(), EventKind::Start | EventKind::HumanResponse)
            || self.steps.iter().any(|s| Self::waits(s, kind))
    }

    fn ends(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let taken = self.steps.iter().flat_map(|s| s.input.types);
        let starts: BTreeSet<&str> = taken
            .filter(|t| t.kind() == EventKind::Start)
            .map(|t| t.name())
            .collect();
        if starts.is_empty() {
            problems.push("no step accepts a start event: let the first step accept StartEvent or a type of the kind \"start\"".to_owned());
        }
        if starts.len() > 1 {
            let names: Vec<&str> = starts.into_iter().collect();
            problems.push(format!(
                "steps accept several start events ({}): a workflow has one",
                names.join(", ")
            ));
        }
        let mut given = self.steps.iter().flat_map(|s| self.gives(s));
        if !given.any(|t| t.kind() == EventKind::Stop) {
            problems.push("no step emits a stop event, so no run would ever end: let the last step emit StopEvent or a type of the kind \"stop\"".to_owned());
        }
        problems
    }

    /// Events that are accepted but not emitted, or emitted but not accepted.
    fn loose_ends(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for step in self.steps {
            for kind in step.input.types.iter().copied() {
                let fits = |t: &&'static EventType| Self::takes(step, t) || t.name() == kind.name();
                let mut fed = self.types.iter().copied().filter(|t| {
                    fits(t) && (t.name() == kind.name() || t.is_one_of(&[kind]).is_some())
                });
                let made = |t: &'static EventType| {
                    self.comes_from_outside(t)
                        || self
                            .steps
                            .iter()
                            .any(|s| self.gives(s).iter().any(|given| given.name() == t.name()))
                };
                if !fed.any(made) && !self.comes_from_outside(kind) {
                    problems.push(format!("step {} accepts {}, but no step emits it: let a step emit it, or give it the kind \"human_response\" if it comes from outside", step.name, kind.name()));
                }
            }
            for kind in step.output.types.iter().chain(step.emits).copied() {
                let mut may = self.types.iter().copied();
                let taken = |t: &'static EventType| {
                    let own = matches!(
                        t.kind(),
                        EventKind::Stop | EventKind::InputRequired | EventKind::Start
                    );
                    own || self
                        .steps
                        .iter()
                        .any(|s| Self::takes(s, t) || Self::waits(s, t))
                };
                if !may.any(|t| t.is_one_of(&[kind]).is_some() && taken(t)) {
                    problems.push(format!("step {} emits {}, but no step accepts it: let a step accept it, or only write it to the stream", step.name, kind.name()));
                }
            }
        }
        problems
    }

    /// Steps after which a run can neither end nor ask a person.
    fn dead_ends(&self) -> Vec<String> {
        let leads = self.leading();
        let cleans = |s: &StepDecl| {
            use crate::failure::Catches;
            let catches = s.extras.map_or(Catches::Nothing, |e| e.catches);
            matches!(catches, Catches::Steps(names) if names.iter().all(|n| ["cancelled", "timeout"].contains(n)))
        };
        let dead = self.steps.iter().enumerate();
        let dead = dead.filter(|(i, s)| !leads[*i] && !cleans(s));
        let says = |s: &StepDecl| {
            format!(
                "step {} is a dead end: nothing that follows from it ends the run or asks for input: let it emit an event that leads to a stop event",
                s.name
            )
        };
        dead.map(|(_, s)| says(s)).collect()
    }

    /// Which steps lead to a stop event, to a question, or return nothing.
    fn leading(&self) -> Vec<bool> {
        let mut leads: Vec<bool> = self
            .steps
            .iter()
            .map(|s| {
                let gives = self.gives(s);
                let end =
                    |t: &&EventType| matches!(t.kind(), EventKind::Stop | EventKind::InputRequired);
                gives.is_empty() || gives.iter().any(end)
            })
            .collect();
        loop {
            let before = leads.clone();
            for (i, step) in self.steps.iter().enumerate() {
                let gives = self.gives(step);
                leads[i] |= self.steps.iter().zip(&before).any(|(other, leads)| {
                    *leads
                        && gives
                            .iter()
                            .any(|t| Self::takes(other, t) || Self::waits(other, t))
                });
            }
            if leads == before {
                return leads;
            }
        }
    }
}
