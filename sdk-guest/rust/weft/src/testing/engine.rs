//! Events on their way from step to step.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use super::calls::Exchange;
use super::{Record, Shared, Streamed};
use crate::boundary::native;
use crate::cbor::{Decoder, Encoder};
use crate::error::{Error, Result};
use crate::event::{EventKind, EventType};
use crate::step::{Shape, StepDecl};
use crate::value::{Raw, Value};
use crate::workflow::{self, Workflow};

/// A run under way.
pub struct World {
    pub workflow: &'static Workflow,
    pub shared: Rc<RefCell<Shared>>,
    pub result: Option<Raw>,
    pub streamed: Vec<Streamed>,
    pub log: Vec<Record>,
    /// What each step has collected so far, for each of its buffers.
    pub buffers: BTreeMap<(usize, String), Vec<(String, Raw)>>,
    queue: VecDeque<Task>,
    joins: BTreeMap<usize, Vec<Event>>,
    events: u64,
    invocations: u64,
}

/// An event.
#[derive(Clone)]
pub struct Event {
    pub name: String,
    pub body: Raw,
    pub id: u64,
    /// The list that it came from.
    pub list: Option<Rc<List>>,
}

/// What a list of events led to. It ends when nothing of it is alive.
pub struct List {
    outer: Option<Rc<List>>,
    alive: Cell<usize>,
    /// By the steps that collect it; none once that step has its events.
    collected: RefCell<BTreeMap<usize, Option<Vec<Event>>>>,
}

/// An invocation that is due.
struct Task {
    step: usize,
    trigger: Vec<Event>,
    listed: bool,
    list: Option<Rc<List>>,
}

/// Sends an event to a run, and goes on until it ends or waits.
pub fn post(world: &Rc<RefCell<World>>, name: &str, body: Raw) -> Result<()> {
    world.borrow_mut().emit(name, body, None);
    loop {
        let task = match &mut *world.borrow_mut() {
            ended if ended.result.is_some() => return Ok(()),
            running => running.queue.pop_front(),
        };
        let Some(task) = task else { return Ok(()) };
        let output = invoke(world, &task)?;
        let mut world = world.borrow_mut();
        world.take(&task, &output)?;
        world.release(task.list);
    }
}

/// Runs one invocation; gives its output. The world is free meanwhile, as
/// calls change it.
fn invoke(world: &Rc<RefCell<World>>, task: &Task) -> Result<Vec<u8>> {
    let (workflow, input) = {
        let mut world = world.borrow_mut();
        world.invocations += 1;
        (world.workflow, world.input(task))
    };
    let len = input.len() as u32;
    let exchange = Rc::new(Exchange::new(
        world.clone(),
        task.step,
        task.list.clone(),
        input,
    ));
    let status = native::with(exchange.clone(), || workflow::step_export(workflow, len));
    let output = exchange.output();
    let mut decoder = Decoder::new(&output);
    decoder.array()?;
    let kind: i32 = decoder.value()?;
    assert_eq!(kind, status, "the status and the output disagree");
    if status != 0 {
        return Err(Error::decode(&mut decoder)?);
    }
    Ok(decoder.raw()?.to_vec())
}

impl World {
    pub fn new(workflow: &'static Workflow, shared: Rc<RefCell<Shared>>) -> Self {
        World {
            workflow,
            shared,
            result: None,
            streamed: Vec::new(),
            log: Vec::new(),
            buffers: BTreeMap::new(),
            queue: VecDeque::new(),
            joins: BTreeMap::new(),
            events: 0,
            invocations: 0,
        }
    }

    pub fn steps(&self) -> &'static [StepDecl] {
        self.workflow.steps()
    }

    /// The input of an invocation.
    fn input(&self, task: &Task) -> Vec<u8> {
        let shared = self.shared.borrow();
        let mut encoder = Encoder::new();
        encoder.array(3);
        encoder.text(self.steps()[task.step].name);
        if task.listed {
            encoder.array(task.trigger.len());
        }
        for event in &task.trigger {
            encoder.array(3);
            encoder.text(&event.name);
            encoder.raw(event.body.bytes());
            encoder.uint(event.id);
        }
        encoder.array(7);
        encoder.text("test");
        encoder.text(self.workflow.name());
        encoder.text(&format!("run-{}", shared.runs));
        encoder.text("session-1");
        encoder.uint(self.invocations);
        encoder.uint(1);
        encoder.int(shared.clock);
        encoder.into_bytes()
    }

    /// Takes what an invocation gave: nothing, an event or a list.
    fn take(&mut self, task: &Task, output: &[u8]) -> Result<()> {
        let decl = &self.steps()[task.step];
        let mut decoder = Decoder::new(output);
        if decoder.null() {
            return Ok(());
        }
        if !decl.output.list {
            let (name, body) = event(&mut decoder)?;
            if kind(decl.output.types, &name) == EventKind::Stop {
                self.result = Some(if name == "StopEvent" {
                    body.read::<BTreeMap<String, Raw>>()?
                        .remove("result")
                        .unwrap_or_default()
                } else {
                    body
                });
                return Ok(());
            }
            self.emit(&name, body, task.list.clone());
            return Ok(());
        }
        let list = self.open(decl.output.types, task.list.clone());
        list.alive.set(1); // until all of it is on its way
        for _ in 0..decoder.array()? {
            let (name, body) = event(&mut decoder)?;
            self.emit(&name, body, Some(list.clone()));
        }
        list.alive.set(list.alive.get() - 1);
        self.close_if_done(&list);
        Ok(())
    }

    /// Begins a list of events of some types.
    fn open(&self, types: &[&EventType], outer: Option<Rc<List>>) -> Rc<List> {
        let mut collected = BTreeMap::new();
        for kind in types {
            for step in self.collectors(kind.name()) {
                collected.insert(step, Some(Vec::new()));
            }
        }
        Rc::new(List {
            outer,
            alive: Cell::new(0),
            collected: RefCell::new(collected),
        })
    }

    /// The steps that collect what a list of such events leads to. A list on
    /// the way is one within it, whose collector leads back.
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

    pub fn accepting(&self, name: &str) -> Vec<(usize, &'static StepDecl)> {
        let steps = self.steps().iter().enumerate();
        steps
            .filter(|(_, d)| d.input.types.iter().any(|t| t.name() == name))
            .collect()
    }

    /// Hands an event to all steps that accept it.
    pub fn emit(&mut self, name: &str, body: Raw, list: Option<Rc<List>>) {
        let event = self.event(name, body, list);
        let mut known = self
            .steps()
            .iter()
            .flat_map(|d| d.output.types.iter().chain(d.emits));
        let asks = known.any(|t| t.name() == name && t.kind() == EventKind::InputRequired);
        if asks {
            self.publish(name, &event.body);
        }
        for (i, decl) in self.accepting(name) {
            self.deliver(i, decl, event.clone());
        }
    }

    /// Makes an event.
    pub fn event(&mut self, name: &str, body: Raw, list: Option<Rc<List>>) -> Event {
        self.events += 1;
        Event {
            name: name.to_owned(),
            body,
            id: self.events,
            list,
        }
    }

    /// Writes an event to the stream.
    pub fn publish(&mut self, name: &str, body: &Raw) {
        self.streamed.push(Streamed {
            name: name.to_owned(),
            body: body.read().unwrap_or_default(),
        });
    }

    /// Hands an event to one step.
    pub fn deliver(&mut self, step: usize, decl: &'static StepDecl, event: Event) {
        match decl.input.shape {
            Shape::One => {
                let list = event.list.clone();
                self.enqueue(step, vec![event], false, list);
            }
            Shape::List => self.collect(step, decl, event),
            Shape::Join => self.join(step, decl, event),
        }
    }

    /// Lets a step run later, as a part of a list.
    fn enqueue(&mut self, step: usize, trigger: Vec<Event>, listed: bool, list: Option<Rc<List>>) {
        let mut part = list.as_ref();
        while let Some(list) = part {
            list.alive.set(list.alive.get() + 1);
            part = list.outer.as_ref();
        }
        self.queue.push_back(Task {
            step,
            trigger,
            listed,
            list,
        });
    }

    /// Ends a part of a list, and of those around it.
    fn release(&mut self, list: Option<Rc<List>>) {
        let mut part = list;
        while let Some(list) = part {
            list.alive.set(list.alive.get() - 1);
            self.close_if_done(&list);
            part = list.outer.clone();
        }
    }

    fn close_if_done(&mut self, list: &Rc<List>) {
        if list.alive.get() > 0 {
            return;
        }
        for (step, events) in &mut *list.collected.borrow_mut() {
            if let Some(events) = events.take() {
                self.enqueue(*step, events, true, list.outer.clone());
            }
        }
    }

    /// Adds an event to what a step gets of the innermost list that leads to it.
    fn collect(&mut self, step: usize, decl: &StepDecl, event: Event) {
        let mut part = event.list.clone();
        while let Some(list) = part {
            let mut collected = list.collected.borrow_mut();
            if let Some(slot) = collected.get_mut(&step) {
                if let Some(events) = slot {
                    events.push(event);
                    if decl.take.is_some_and(|n| events.len() == n as usize) {
                        let events = slot.take().unwrap_or_default();
                        self.enqueue(step, events, true, list.outer.clone());
                    }
                }
                return;
            }
            drop(collected);
            part = list.outer.clone();
        }
    }

    /// Keeps an event until the step has one of each type.
    fn join(&mut self, step: usize, decl: &StepDecl, event: Event) {
        let list = event.list.clone();
        let kept = self.joins.entry(step).or_default();
        kept.push(event);
        let mut places: Vec<usize> = Vec::new();
        for kind in decl.input.types {
            let free = |(i, e): &(usize, &Event)| e.name == kind.name() && !places.contains(i);
            match kept.iter().enumerate().find(free) {
                Some((i, _)) => places.push(i),
                None => return,
            }
        }
        let set = places.iter().map(|i| kept[*i].clone()).collect();
        let mut i = 0;
        kept.retain(|_| {
            i += 1;
            !places.contains(&(i - 1))
        });
        self.enqueue(step, set, true, list);
    }
}

/// The kind of one of some types.
fn kind(types: &[&EventType], name: &str) -> EventKind {
    let kind = types.iter().find(|t| t.name() == name).map(|t| t.kind());
    kind.unwrap_or(EventKind::Plain)
}

/// Reads an event's name and body.
pub fn event(decoder: &mut Decoder) -> Result<(String, Raw)> {
    let n = decoder.array()?;
    let name = decoder.text()?.to_owned();
    let body = decoder.value()?;
    for _ in 2..n {
        decoder.skip()?;
    }
    Ok((name, body))
}

impl Shared {
    /// Pseudo-random bytes, the same ones in every test.
    pub fn random(&mut self, n: usize) -> Vec<u8> {
        let mut byte = || {
            self.chance ^= self.chance << 13;
            self.chance ^= self.chance >> 7;
            self.chance ^= self.chance << 17;
            (self.chance >> 32) as u8
        };
        (0..n).map(|_| byte()).collect()
    }

    /// Makes a batch of edits, all or none; gives their results.
    pub fn edit(&mut self, edits: &[(String, String, Value)]) -> Result<Vec<Value>> {
        let mut state = self.state.clone();
        let mut results = Vec::new();
        for (op, path, value) in edits {
            results.push(super::paths::edit(
                &mut state,
                &self.initial,
                op,
                path,
                value.clone(),
            )?);
        }
        self.state = state;
        Ok(results)
    }
}
