//! Lists of events, and the steps that collect their results.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use super::engine::{Event, Invocation, World, lineage_of};
use crate::event::EventType;
use crate::step::{Shape, StepDecl};

/// The invocations that a list of events led to. It ends when all of them have ended.
pub struct List {
    outer: Option<Rc<List>>,
    alive: Cell<usize>,
    /// By the collecting steps; `None` once a step has its events.
    collected: RefCell<BTreeMap<usize, Option<Vec<Event>>>>,
}

/// A list, and the lists around it.
fn all(list: &Option<Rc<List>>) -> impl Iterator<Item = Rc<List>> + use<> {
    std::iter::successors(list.clone(), |list| list.outer.clone())
}

/// Counts another part of a list, and of the lists around it.
pub fn enter(list: &Option<Rc<List>>) {
    for list in all(list) {
        list.alive.set(list.alive.get() + 1);
    }
}

impl World {
    /// Begins a list of events of some types, which stays open until it is
    /// [released](World::release_one).
    pub fn open(&self, types: &[&EventType], outer: Option<Rc<List>>) -> Rc<List> {
        let mut collected = BTreeMap::new();
        for kind in types {
            for step in self.collectors(kind.name()) {
                collected.insert(step, Some(Vec::new()));
            }
        }
        Rc::new(List {
            outer,
            alive: Cell::new(1),
            collected: RefCell::new(collected),
        })
    }

    /// The steps that collect the results of a list of such events. A list on the way is
    /// nested in it; its collector leads back.
    fn collectors(&self, name: &'static str) -> Vec<usize> {
        let mut found = Vec::new();
        let mut seen = Vec::new();
        let mut ahead = vec![(name, 0usize)];
        while let Some((name, depth)) = ahead.pop() {
            if seen.contains(&(name, depth)) || depth > self.steps().len() {
                continue;
            }
            seen.push((name, depth));
            for (i, decl) in self.accepting(name) {
                let collects = decl.input.shape == Shape::List;
                if collects && depth == 0 {
                    found.push(i);
                    continue;
                }
                let depth = depth - usize::from(collects);
                ahead.extend(decl.sends().map(|t| (t.name(), depth)));
                if decl.output.list {
                    ahead.extend(decl.output.types.iter().map(|t| (t.name(), depth + 1)));
                }
            }
        }
        found
    }

    /// Ends a part of a list, and of the lists around it.
    pub fn release(&mut self, list: &Option<Rc<List>>) {
        for list in all(list) {
            self.release_one(&list);
        }
    }

    /// Ends a part of a list. The list closes with its last part.
    pub fn release_one(&mut self, list: &Rc<List>) {
        list.alive.set(list.alive.get() - 1);
        if list.alive.get() > 0 {
            return;
        }
        for (step, events) in &mut *list.collected.borrow_mut() {
            if let Some(events) = events.take() {
                self.fire(*step, events, list);
            }
        }
    }

    fn fire(&mut self, step: usize, trigger: Vec<Event>, list: &List) {
        self.enqueue(Invocation {
            step,
            lineage: lineage_of(&trigger),
            trigger,
            listed: true,
            list: list.outer.clone(),
            ..Invocation::default()
        });
    }

    /// Adds an event to the events that a step collects from the innermost list.
    pub fn collect(&mut self, step: usize, decl: &StepDecl, event: Event) {
        for list in all(&event.list) {
            let mut collected = list.collected.borrow_mut();
            let Some(slot) = collected.get_mut(&step) else {
                continue;
            };
            let Some(events) = slot else { return };
            events.push(event);
            if decl.take.is_some_and(|n| events.len() == n as usize) {
                let events = slot.take().unwrap_or_default();
                self.fire(step, events, &list);
            }
            return;
        }
    }
}
