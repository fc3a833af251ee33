//! Events on their way from step to step.

use std::any::Any;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
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
use crate::failure::{Catches, Exception, StepFailed};
use crate::step::{Shape, StepDecl};
use crate::value::{Raw, Value};
use crate::workflow::{self, Workflow};

/// A run under way.
pub struct World {
    pub workflow: &'static Workflow,
    pub place: Place,
    /// The stop event that ended it.
    pub stop: Option<(String, Raw)>,
    pub streamed: Vec<Streamed>,
    pub log: Vec<Record>,
    /// What each step has collected so far, for each of its buffers.
    pub buffers: BTreeMap<(usize, String), Vec<(String, Raw)>>,
    pub queue: VecDeque<Invocation>,
    /// Invocations that wait, oldest first.
    pub waiters: Vec<Invocation>,
    /// Events that came before a step waited for them.
    pub kept: Vec<Event>,
    pub children: Vec<Rc<RefCell<World>>>,
    /// Whose child it is.
    pub parent: Weak<RefCell<World>>,
    /// Whether its stream is on the parent's too.
    pub shown: bool,
    pub depth: usize,
    id: String,
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

/// An invocation: due, under way or waiting.
#[derive(Default)]
pub struct Invocation {
    pub step: usize,
    pub trigger: Vec<Event>,
    pub listed: bool,
    pub list: Option<Rc<List>>,
    /// Whether it handles a failure.
    pub caught: bool,
    /// 0 until it is begun.
    pub number: u64,
    /// How its calls were answered before it waited.
    pub record: Vec<Answer>,
    /// How many lines it printed before it waited.
    pub printed: usize,
    /// How the children with names ended.
    pub named: BTreeMap<String, Answer>,
    pub pending: Pending,
}

/// What came of an invocation.
enum Outcome {
    Gave(Vec<u8>),
    Failed(Error),
    Waits,
}

/// Sends an event to a run, and goes on until it ends or waits.
pub fn post(world: &Rc<RefCell<World>>, name: &str, body: Raw) -> Result<()> {
    world.borrow_mut().emit(name, body, None);
    work(world)
}

/// Goes on with a run until it ends or waits.
pub fn work(world: &Rc<RefCell<World>>) -> Result<()> {
    let result = drain(world);
    child::tell(world, result)
}

fn drain(world: &Rc<RefCell<World>>) -> Result<()> {
    loop {
        let next = match &mut *world.borrow_mut() {
            ended if ended.stop.is_some() => None,
            running => running.queue.pop_front(),
        };
        let Some(invocation) = next else {
            return Ok(());
        };
        let (invocation, outcome) = invoke(world, invocation)?;
        let mut world = world.borrow_mut();
        match outcome {
            Outcome::Waits => {
                world.waiters.push(invocation);
                continue;
            }
            Outcome::Gave(output) => world.take(&invocation, &output)?,
            Outcome::Failed(error) => world.catch(&invocation, error)?,
        }
        world.release(&invocation.list);
    }
}

/// Runs an invocation, from its start: what it did before it waited is answered
/// as it was. The world is free meanwhile, as calls change it.
fn invoke(world: &Rc<RefCell<World>>, mut invocation: Invocation) -> Result<(Invocation, Outcome)> {
    let (workflow, input) = {
        let mut world = world.borrow_mut();
        if invocation.number == 0 {
            world.invocations += 1;
            invocation.number = world.invocations;
        }
        (world.workflow, world.input(&invocation))
    };
    let len = input.len() as u32;
    let exchange = Rc::new(Exchange::new(world.clone(), invocation, input));
    let host = exchange.clone();
    let step = AssertUnwindSafe(|| native::with(host, || workflow::step_export(workflow, len)));
    let outcome = match catch_unwind(step) {
        Ok(status) => read_output(&exchange.output(), status)?,
        Err(reason) => waits_or_panics(reason),
    };
    exchange.settle(matches!(outcome, Outcome::Gave(_)));
    Ok((exchange.invocation.take(), outcome))
}

/// A step that panics ends the test; one that waits was ended on purpose.
fn waits_or_panics(reason: Box<dyn Any + Send>) -> Outcome {
    if reason.is::<Suspended>() {
        return Outcome::Waits;
    }
    resume_unwind(reason)
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
        World {
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
            id,
            joins: BTreeMap::new(),
            events: 0,
            invocations: 0,
        }
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
        encoder.array(7);
        encoder.text("test");
        encoder.text(self.workflow.name());
        encoder.text(&self.id);
        encoder.text(&self.place.id);
        encoder.uint(invocation.number);
        encoder.uint(1);
        encoder.int(root.clock);
        if let Some(config) = config {
            encoder.raw(config.bytes());
        }
        encoder.into_bytes()
    }

    /// Takes what an invocation gave: nothing, an event or a list.
    fn take(&mut self, invocation: &Invocation, output: &[u8]) -> Result<()> {
        let decl = &self.steps()[invocation.step];
        let mut decoder = Decoder::new(output);
        if decoder.null() {
            return Ok(());
        }
        if !decl.output.list {
            let (name, body) = event(&mut decoder)?;
            if self.kind(&name) == EventKind::Stop {
                self.stop = Some((name, body));
            } else {
                self.emit(&name, body, invocation.list.clone());
            }
            return Ok(());
        }
        let list = self.open(decl.output.types, invocation.list.clone());
        for _ in 0..decoder.array()? {
            let (name, body) = event(&mut decoder)?;
            self.emit(&name, body, Some(list.clone()));
        }
        self.release_one(&list);
        Ok(())
    }

    /// Hands the failure of an invocation to the step that catches it.
    fn catch(&mut self, failed: &Invocation, error: Error) -> Result<()> {
        let Some(step) = self.catcher(failed.step).filter(|_| !failed.caught) else {
            return Err(error);
        };
        let body = Raw::of(&StepFailed {
            step_name: self.steps()[failed.step].name.to_owned(),
            exception: Exception {
                exception_type: error.code().to_owned(),
                exception_message: error.message().to_owned(),
            },
            attempts: 1,
            elapsed_seconds: 0.0,
            input_event: Some(failed.shown()?),
        })?;
        let list = failed.list.clone();
        let event = self.event("StepFailedEvent", body, list.clone());
        self.enqueue(Invocation {
            step,
            trigger: vec![event],
            list,
            caught: true,
            ..Invocation::default()
        });
        Ok(())
    }

    /// The step that catches the failures of another: one that names it, or one
    /// that catches all.
    fn catcher(&self, failed: usize) -> Option<usize> {
        let name = self.steps()[failed].name;
        let catches = |d: &StepDecl| d.extras.map_or(Catches::Nothing, |e| e.catches);
        let find = |fits: &dyn Fn(Catches) -> bool| {
            let mut steps = self.steps().iter();
            steps.position(|d| fits(catches(d)))
        };
        find(&|c| matches!(c, Catches::Steps(names) if names.contains(&name)))
            .or_else(|| find(&|c| matches!(c, Catches::All)))
            .filter(|step| *step != failed)
    }

    /// The type of a name, if the workflow has it.
    fn known(&self, name: &str) -> Option<&'static EventType> {
        let types = self.steps().iter().flat_map(StepDecl::types);
        types.flat_map(EventType::line).find(|t| t.name() == name)
    }

    /// The kind of the type of a name.
    fn kind(&self, name: &str) -> EventKind {
        self.known(name).map_or(EventKind::Plain, EventType::kind)
    }

    /// Whether an event of a name is one of some types, for a step.
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

    /// Hands an event to the one who waits for it, or to all steps that accept
    /// it.
    pub fn emit(&mut self, name: &str, body: Raw, list: Option<Rc<List>>) {
        let event = self.event(name, body, list);
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
    pub fn event(&mut self, name: &str, body: Raw, list: Option<Rc<List>>) -> Event {
        self.events += 1;
        Event {
            name: name.to_owned(),
            body,
            id: self.events,
            list,
        }
    }

    /// Writes an event to the stream, and to the parent's if that asked for it.
    pub fn publish(&mut self, name: &str, body: &Raw) {
        self.streamed.push(Streamed {
            name: name.to_owned(),
            body: body.read().unwrap_or_default(),
        });
        if let (true, Some(parent)) = (self.shown, self.parent.upgrade()) {
            parent.borrow_mut().publish(name, body);
        }
    }

    /// Hands an event to one step.
    pub fn deliver(&mut self, step: usize, decl: &'static StepDecl, event: Event) {
        match decl.input.shape {
            Shape::One => self.enqueue(Invocation {
                step,
                list: event.list.clone(),
                trigger: vec![event],
                ..Invocation::default()
            }),
            Shape::List => self.collect(step, decl, event),
            Shape::Join => self.join(step, decl, event),
        }
    }

    /// Lets a step run later, as a part of a list.
    pub fn enqueue(&mut self, invocation: Invocation) {
        lists::enter(&invocation.list);
        self.queue.push_back(invocation);
    }

    /// Keeps an event until the step has one of each type.
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
        let trigger = places.iter().map(|i| kept[*i].clone()).collect();
        let mut i = 0;
        kept.retain(|_| {
            i += 1;
            !places.contains(&(i - 1))
        });
        self.joins.insert(step, kept);
        self.enqueue(Invocation {
            step,
            trigger,
            listed: true,
            list,
            ..Invocation::default()
        });
    }
}

impl Event {
    /// The event as a guest gets it.
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
    /// What it was called with, as a catching step sees it.
    fn shown(&self) -> Result<Value> {
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
