//! How events reach steps.

use std::any::Any;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::{Rc, Weak};

use super::calls::Exchange;
use super::child;
use super::lists::{self, List};
use super::wait::{Pending, Suspended};
use super::{Place, Record, Streamed};
use crate::boundary::{Answer, native};
use crate::cbor::{Decoder, Encoder};
use crate::error::{Error, Result};
use crate::event::{EventKind, EventType};
use crate::failure::Catches;
use crate::step::{Shape, StepDecl};
use crate::value::{Raw, Value};
use crate::workflow::{self, Workflow};

/// A run in progress.
pub struct World {
    pub workflow: &'static Workflow,
    pub place: Place,
    /// The stop event that ended the run.
    pub stop: Option<(String, Raw)>,
    pub streamed: Vec<Streamed>,
    pub log: Vec<Record>,
    /// The events that each step has collected so far, for each of its buffers.
    pub buffers: BTreeMap<(usize, String), Vec<(String, Raw)>>,
    pub queue: VecDeque<Invocation>,
    /// Invocations that wait, oldest first.
    pub waiters: Vec<Invocation>,
    /// Events that arrived before a step waited for them.
    pub kept: Vec<Event>,
    pub children: Vec<Rc<RefCell<World>>>,
    /// The run that started this run as its child.
    pub parent: Weak<RefCell<World>>,
    /// Whether its stream is copied to the parent's.
    pub shown: bool,
    pub depth: usize,
    /// Why the run failed, or that it was cancelled.
    pub failed: Option<Error>,
    /// The cause of the run's end, while its steps clean up.
    pub ending: Option<Error>,
    /// Invocations that will be retried.
    pub delayed: Vec<Invocation>,
    pub begun: i64,
    /// The time at which the run, or its clean-up, times out.
    pub deadline: Option<i64>,
    /// The output of the function that a test has called.
    pub output: Option<Value>,
    /// Whether its parent has received its end.
    pub told: bool,
    /// The last step that returned nothing, and the last step that ended.
    pub silent: Option<&'static str>,
    pub last: Option<&'static str>,
    id: String,
    pub joins: BTreeMap<usize, Vec<Event>>,
    events: u64,
    pub invocations: u64,
}

/// An event.
#[derive(Clone)]
pub struct Event {
    pub name: String,
    pub body: Raw,
    pub id: u64,
    /// The list that the event belongs to.
    pub list: Option<Rc<List>>,
    pub lineage: Lineage,
}

/// How often each catching step has recovered the failures behind an event.
pub type Lineage = BTreeMap<usize, u64>;

/// An invocation: due, running or waiting.
#[derive(Default)]
pub struct Invocation {
    pub step: usize,
    pub trigger: Vec<Event>,
    pub listed: bool,
    pub list: Option<Rc<List>>,
    pub lineage: Lineage,
    /// 0 until it begins.
    pub number: u64,
    /// The number of the attempt, from 1, once it has begun; and when this attempt and
    /// the first attempt began.
    pub attempt: u64,
    pub tried: i64,
    pub began: i64,
    /// Why the previous attempt failed.
    pub last_error: Option<Error>,
    /// When it is retried.
    pub due: i64,
    /// The answers to its calls before it waited.
    pub record: Vec<Answer>,
    /// How many lines it printed before it waited.
    pub printed: usize,
    /// The results of named children and of answered waits, for all attempts.
    pub named: BTreeMap<String, Answer>,
    pub answered: BTreeMap<String, Vec<u8>>,
    pub pending: Pending,
}

/// The result of an invocation.
pub enum Outcome {
    Gave(Vec<u8>),
    Failed(Error),
    Waits,
}

/// Continues a run until it ends or nothing in it can continue.
pub fn work(world: &Rc<RefCell<World>>) {
    while let Some(invocation) = next(world) {
        let (invocation, outcome) = invoke(world, invocation);
        world.borrow_mut().came(invocation, outcome);
    }
    if world.borrow_mut().has_news() {
        child::tell(world);
    }
}

fn next(world: &Rc<RefCell<World>>) -> Option<Invocation> {
    let mut world = world.borrow_mut();
    world.conclude();
    if world.is_over() {
        return None;
    }
    world.queue.pop_front()
}

/// Runs an invocation from its start. Its earlier calls return their recorded answers.
/// The world is not borrowed meanwhile, because calls change it.
fn invoke(world: &Rc<RefCell<World>>, mut invocation: Invocation) -> (Invocation, Outcome) {
    let (workflow, input) = {
        let mut world = world.borrow_mut();
        world.begin(&mut invocation);
        (world.workflow, world.input(&invocation))
    };
    let len = input.len() as u32;
    let exchange = Rc::new(Exchange::new(world.clone(), invocation, input));
    let host = exchange.clone();
    let step = AssertUnwindSafe(|| native::with(host, || workflow::step_export(workflow, len)));
    let outcome = match catch_unwind(step) {
        Ok(status) => read_output(&exchange.output(), status)
            .unwrap_or_else(|e| Outcome::Failed(e.context("the step's output"))),
        Err(reason) => waits_or_panics(reason.as_ref()),
    };
    exchange.settle(matches!(outcome, Outcome::Gave(_)));
    (exchange.invocation.take(), outcome)
}

/// A step that waits was unwound on purpose; a step that panics fails as on a server.
fn waits_or_panics(reason: &(dyn Any + Send)) -> Outcome {
    if reason.is::<Suspended>() {
        return Outcome::Waits;
    }
    let text = reason.downcast_ref::<&str>().copied();
    let text = text.or_else(|| reason.downcast_ref::<String>().map(String::as_str));
    Outcome::Failed(Error::new("panic", text.unwrap_or("(no message)")))
}

fn read_output(output: &[u8], status: i32) -> Result<Outcome> {
    let mut decoder = Decoder::new(output);
    decoder.array()?;
    let kind: i32 = decoder.value()?;
    assert_eq!(kind, status, "the status and the output disagree");
    Ok(if status == 0 {
        Outcome::Gave(decoder.raw()?.to_vec())
    } else {
        Outcome::Failed(Error::decode(&mut decoder)?)
    })
}

impl World {
    pub fn new(workflow: &'static Workflow, place: Place) -> Self {
        let id = place.next_run();
        let begun = place.root.borrow().clock;
        let mut world = World {
            workflow,
            place,
            stop: None,
            streamed: Vec::new(),
            log: Vec::new(),
            buffers: BTreeMap::new(),
            queue: VecDeque::new(),
            waiters: Vec::new(),
            kept: Vec::new(),
            children: Vec::new(),
            parent: Weak::new(),
            shown: false,
            depth: 0,
            failed: None,
            ending: None,
            delayed: Vec::new(),
            begun,
            deadline: None,
            output: None,
            told: false,
            silent: None,
            last: None,
            id,
            joins: BTreeMap::new(),
            events: 0,
            invocations: 0,
        };
        let time = world.timeout();
        world.deadline = (time > 0).then(|| begun.saturating_add(time));
        world
    }

    pub fn steps(&self) -> &'static [StepDecl] {
        self.workflow.steps()
    }

    /// The input of an invocation.
    fn input(&self, invocation: &Invocation) -> Vec<u8> {
        let step = self.steps()[invocation.step].name;
        let root = self.place.root.borrow();
        let config = root.config.get(step);
        let mut encoder = Encoder::new();
        encoder.array(if config.is_some() { 4 } else { 3 });
        encoder.text(step);
        if invocation.listed {
            encoder.array(invocation.trigger.len());
        }
        for event in &invocation.trigger {
            encoder.raw(&event.encode());
        }
        let failed = invocation.last_error.as_ref();
        encoder.array(if failed.is_some() { 8 } else { 7 });
        encoder.text("default");
        encoder.text(self.workflow.name());
        encoder.text(&self.id);
        encoder.text(&self.place.id);
        encoder.uint(invocation.number);
        encoder.uint(invocation.attempt);
        encoder.int(root.clock);
        if let Some(error) = failed {
            error.encode(&mut encoder);
        }
        if let Some(config) = config {
            encoder.raw(config.bytes());
        }
        encoder.into_bytes()
    }

    /// Processes the output of an invocation: nothing, an event or a list.
    pub fn take(&mut self, invocation: &Invocation, output: &[u8]) -> Result<()> {
        let decl = &self.steps()[invocation.step];
        let mut decoder = Decoder::new(output);
        if decoder.null() {
            self.silent = Some(decl.name);
            return Ok(());
        }
        if !decl.output.list {
            let (name, body) = event(&mut decoder)?;
            if self.kind(&name) != EventKind::Stop {
                self.emit(
                    &name,
                    body,
                    invocation.list.clone(),
                    invocation.lineage.clone(),
                );
            } else if self.ending.is_none() {
                self.stop = Some((name, body));
            }
            return Ok(());
        }
        let list = self.open(decl.output.types, invocation.list.clone());
        let n = decoder.array()?;
        if n == 0 {
            self.silent = Some(decl.name);
        }
        for _ in 0..n {
            let (name, body) = event(&mut decoder)?;
            self.emit(&name, body, Some(list.clone()), invocation.lineage.clone());
        }
        self.release_one(&list);
        Ok(())
    }

    /// The step that catches the failures of another step: a step that names it, or a
    /// step that catches all failures, unless it has done so too often for these events.
    pub fn catcher(&self, failed: usize, lineage: &Lineage) -> Option<usize> {
        let name = self.steps()[failed].name;
        let catches = |d: &StepDecl| d.extras.map_or(Catches::Nothing, |e| e.catches);
        let find = |fits: &dyn Fn(Catches) -> bool| {
            let mut steps = self.steps().iter();
            steps.position(|d| fits(catches(d)))
        };
        let step = find(&|c| matches!(c, Catches::Steps(names) if names.contains(&name)))
            .or_else(|| find(&|c| matches!(c, Catches::All)))?;
        let most = self.steps()[step].extras.and_then(|e| e.max_recoveries);
        let done = lineage.get(&step).copied().unwrap_or(0);
        (step != failed && done < most.unwrap_or(1)).then_some(step)
    }

    /// The steps that catch a cancellation or a timeout of the run.
    pub fn cleaners(&self, cause: &str) -> Vec<usize> {
        let catches = |d: &StepDecl| match d.extras.map(|e| e.catches) {
            Some(Catches::Steps(names)) => names.contains(&cause),
            _ => false,
        };
        let steps = self.steps().iter().enumerate();
        steps.filter(|(_, d)| catches(d)).map(|(i, _)| i).collect()
    }

    /// The type with a name, if the workflow has it.
    pub fn known(&self, name: &str) -> Option<&'static EventType> {
        let types = self.steps().iter().flat_map(StepDecl::types);
        types.flat_map(EventType::line).find(|t| t.name() == name)
    }

    /// The kind of the type with a name.
    pub fn kind(&self, name: &str) -> EventKind {
        self.known(name).map_or(EventKind::Plain, EventType::kind)
    }

    /// Whether an event with a name belongs to one of some types, for a step.
    pub fn is_one_of(&self, name: &str, types: &[&'static EventType], decl: &StepDecl) -> bool {
        let subtypes = decl.extras.is_some_and(|e| e.rename.is_some());
        types.iter().any(|t| t.name() == name)
            || subtypes
                && self
                    .known(name)
                    .is_some_and(|t| t.is_one_of(types).is_some())
    }

    pub fn accepting(&self, name: &str) -> Vec<(usize, &'static StepDecl)> {
        let steps = self.steps().iter().enumerate();
        steps
            .filter(|(_, d)| self.is_one_of(name, d.input.types, d))
            .collect()
    }

    /// Passes an event to the invocation that waits for it, or to all steps that accept
    /// it.
    pub fn emit(&mut self, name: &str, body: Raw, list: Option<Rc<List>>, lineage: Lineage) {
        if self.is_answered(name, &body) {
            return;
        }
        let event = self.event(name, body, list, lineage);
        if self.kind(name) == EventKind::InputRequired {
            self.publish(name, &event.body);
        }
        if self.answer(&event) {
            return;
        }
        let steps = self.accepting(name);
        for (i, decl) in &steps {
            self.deliver(*i, decl, event.clone());
        }
        if steps.is_empty() && self.is_waited_for(name) {
            self.kept.push(event);
        }
    }

    /// Makes an event.
    pub fn event(
        &mut self,
        name: &str,
        body: Raw,
        list: Option<Rc<List>>,
        lineage: Lineage,
    ) -> Event {
        self.events += 1;
        Event {
            name: name.to_owned(),
            body,
            id: self.events,
            list,
            lineage,
        }
    }

    /// Writes an event to the stream, and to the parent's stream if the parent asked for
    /// that.
    pub fn publish(&mut self, name: &str, body: &Raw) {
        self.streamed.push(Streamed {
            name: name.to_owned(),
            body: body.read().unwrap_or_default(),
        });
        if let (true, Some(parent)) = (self.shown, self.parent.upgrade()) {
            parent.borrow_mut().publish(name, body);
        }
    }

    /// Passes an event to one step.
    pub fn deliver(&mut self, step: usize, decl: &'static StepDecl, event: Event) {
        match decl.input.shape {
            Shape::One => self.enqueue(Invocation {
                step,
                list: event.list.clone(),
                lineage: event.lineage.clone(),
                trigger: vec![event],
                ..Invocation::default()
            }),
            Shape::List => self.collect(step, decl, event),
            Shape::Join => self.join(step, decl, event),
        }
    }

    /// Queues an invocation of a step, as a part of a list.
    pub fn enqueue(&mut self, invocation: Invocation) {
        lists::enter(&invocation.list);
        self.queue.push_back(invocation);
    }

    /// Stores an event until the step has one event of each type.
    fn join(&mut self, step: usize, decl: &StepDecl, event: Event) {
        let list = event.list.clone();
        let mut kept = self.joins.remove(&step).unwrap_or_default();
        kept.push(event);
        let mut places: Vec<usize> = Vec::new();
        for kind in decl.input.types {
            let free = |(i, e): &(usize, &Event)| {
                self.is_one_of(&e.name, &[kind], decl) && !places.contains(i)
            };
            match kept.iter().enumerate().find(free) {
                Some((i, _)) => places.push(i),
                None => {
                    self.joins.insert(step, kept);
                    return;
                }
            }
        }
        let trigger: Vec<Event> = places.iter().map(|i| kept[*i].clone()).collect();
        let mut i = 0;
        kept.retain(|_| {
            i += 1;
            !places.contains(&(i - 1))
        });
        self.joins.insert(step, kept);
        self.enqueue(Invocation {
            step,
            lineage: lineage_of(&trigger),
            trigger,
            listed: true,
            list,
            ..Invocation::default()
        });
    }
}

impl Event {
    /// The event in the encoding for a guest.
    pub fn encode(&self) -> Vec<u8> {
        let mut encoder = Encoder::new();
        encoder.array(3);
        encoder.text(&self.name);
        encoder.raw(self.body.bytes());
        encoder.uint(self.id);
        encoder.into_bytes()
    }
}

impl Invocation {
    /// The trigger in the form that a catching step receives.
    pub fn shown(&self) -> Result<Value> {
        let show = |event: &Event| {
            let value = event.body.read()?;
            Ok(Value::map([
                ("type", event.name.as_str().into()),
                ("value", value),
            ]))
        };
        if self.listed {
            let events: Result<Vec<Value>> = self.trigger.iter().map(show).collect();
            return events.map(Value::from);
        }
        show(&self.trigger[0])
    }
}

/// The lineage of several events.
pub fn lineage_of(events: &[Event]) -> Lineage {
    let mut all = Lineage::new();
    for (step, n) in events.iter().flat_map(|e| &e.lineage) {
        let most = all.entry(*step).or_default();
        *most = (*n).max(*most);
    }
    all
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
