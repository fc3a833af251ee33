//! Workflows that steps run as children.

use std::cell::RefCell;
use std::rc::Rc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::calls::{Exchange, answer_of};
use super::engine::{self, World};
use super::wait::{Pending, suspend};
use super::{Place, Session};
use crate::boundary::Answer;
use crate::cbor::{Decoder, Encoder};
use crate::error::{Error, Result, code};
use crate::value::{Raw, Value};
use crate::workflow::Workflow;

/// The largest depth of children of children, so that a workflow that runs itself
/// endlessly fails.
const DEEPEST: usize = 100;

/// A workflow or a function that runs as a child.
#[derive(Clone)]
pub enum Starter {
    Function(Rc<dyn Fn(Raw) -> Result<Raw>>),
    Workflow(&'static Workflow),
}

impl Session {
    /// Replaces a workflow that steps run as their child by a function. The function
    /// receives the fields of the start event and returns the result; an error that it
    /// returns becomes the child's error.
    ///
    /// ```
    /// # use weft::prelude::*;
    /// # use weft::testing::Session;
    /// # #[derive(StartEvent)] struct StartEvent { n: u32 }
    /// # #[step] fn start(ctx: &Context, ev: StartEvent) -> Result<Stop> {
    /// #     Ok(Stop::new(ctx.run_workflow("double", &ev).result::<u32>()?))
    /// # }
    /// # workflow!("w", steps = [start]);
    /// # fn main() {
    /// let session = Session::new(&WORKFLOW).child("double", |start: StartEvent| Ok(2 * start.n));
    /// # assert_eq!(session.run(&StartEvent { n: 4 }).unwrap().result::<u32>().unwrap(), 8);
    /// # }
    /// ```
    #[must_use]
    pub fn child<E: DeserializeOwned, R: Serialize>(
        self,
        workflow: &str,
        run: impl Fn(E) -> Result<R> + 'static,
    ) -> Self {
        let run = move |start: Raw| {
            let start = start.read().map_err(|e| e.context("start event"))?;
            Raw::of(&run(start)?)
        };
        self.with(workflow, Starter::Function(Rc::new(run)))
    }

    /// Makes a workflow of this process available as a child, by its name. The session's
    /// own workflow is always available: it can be its own child.
    #[must_use]
    pub fn child_workflow(self, workflow: &'static Workflow) -> Self {
        self.with(workflow.name(), Starter::Workflow(workflow))
    }

    fn with(self, name: &str, starter: Starter) -> Self {
        let mut root = self.place.root.borrow_mut();
        root.starters.insert(name.to_owned(), starter);
        drop(root);
        self
    }
}

/// The request of `run_workflow`.
#[derive(crate::Data)]
struct Request {
    workflow: String,
    event: (String, Raw),
    id: Option<String>,
    session: Option<Where>,
    #[weft(default)]
    include_stream: bool,
}

/// The session of a child.
#[derive(crate::Data, Default)]
struct Where {
    #[weft(default)]
    shared: bool,
    id: Option<String>,
}

impl Exchange {
    /// Answers `run_workflow` with the child's result, or ends the step until the child
    /// has one.
    pub fn run_workflow(&self, request: &mut Decoder) -> Answer {
        let request: Request = match request.value() {
            Ok(request) => request,
            Err(e) => return answer_of(Err(Error::misuse(e))),
        };
        let known = request.id.as_ref().and_then(|id| {
            let invocation = self.invocation.borrow();
            invocation.named.get(id).cloned()
        });
        if let Some(answer) = known {
            return answer;
        }
        let named = request.id.clone();
        let ended = self.begin_child(request);
        let answer = answer_of(ended);
        if let Some(id) = named {
            let mut invocation = self.invocation.borrow_mut();
            invocation.named.insert(id, answer.clone());
        }
        answer
    }

    /// Begins a child, and returns its stop event.
    fn begin_child(&self, request: Request) -> Result<Vec<u8>> {
        match self.starter(&request.workflow)? {
            Starter::Function(run) => {
                let mut encoder = Encoder::new();
                encoder.array(2);
                encoder.text("StopEvent");
                encoder.map(1);
                encoder.text("result");
                encoder.raw(run(request.event.1)?.bytes());
                Ok(encoder.into_bytes())
            }
            Starter::Workflow(workflow) => {
                let child = self.child(workflow, &request);
                child.borrow_mut().start(request.event.1)?;
                engine::work(&child);
                if let Some(ended) = ended(&child.borrow()) {
                    return ended;
                }
                self.invocation.borrow_mut().pending = Pending::Child {
                    named: request.id,
                    world: child,
                };
                suspend()
            }
        }
    }

    fn starter(&self, name: &str) -> Result<Starter> {
        let world = self.world.borrow();
        let given = world.place.root.borrow().starters.get(name).cloned();
        let own = || (name == world.workflow.name()).then_some(Starter::Workflow(world.workflow));
        let Some(starter) = given.or_else(own) else {
            return Err(Error::new(
                code::NOT_FOUND,
                format_args!("no workflow {name}: give the session one, .child(\"{name}\", ...)"),
            ));
        };
        if world.depth == DEEPEST {
            return Err(Error::new(
                code::LIMIT_EXCEEDED,
                format_args!("the workflow {name} is too deep a child of children"),
            ));
        }
        Ok(starter)
    }

    /// Makes the run of a child.
    fn child(&self, workflow: &'static Workflow, request: &Request) -> Rc<RefCell<World>> {
        let mut world = self.world.borrow_mut();
        let root = &world.place.root;
        let place = match &request.session {
            Some(Where { shared: true, .. }) => world.place.for_workflow(workflow),
            Some(Where { id: Some(id), .. }) => Place::new(root.clone(), workflow, Some(id)),
            _ => Place::new(root.clone(), workflow, None),
        };
        let mut child = World::new(workflow, place);
        child.parent = Rc::downgrade(&self.world);
        child.shown = request.include_stream;
        child.depth = world.depth + 1;
        let child = Rc::new(RefCell::new(child));
        let root = world.place.root.clone();
        root.borrow_mut().worlds.push(Rc::downgrade(&child));
        world.children.push(child.clone());
        child
    }
}

/// The stop event of a run that has ended, or why it failed; `None` while it runs.
fn ended(world: &World) -> Option<Result<Vec<u8>>> {
    if let Some(error) = &world.failed {
        return Some(Err(error.clone()));
    }
    let (name, body) = world.stop.as_ref()?;
    let mut encoder = Encoder::new();
    encoder.array(2);
    encoder.text(name);
    encoder.raw(body.bytes());
    Some(Ok(encoder.into_bytes()))
}

/// Passes the end of a child to the step that waits for it.
pub fn tell(world: &Rc<RefCell<World>>) {
    let ended = ended(&world.borrow());
    let parent = world.borrow().parent.upgrade();
    let (Some(parent), Some(ended)) = (parent, ended) else {
        return;
    };
    let Some(mut waiter) = parent.borrow_mut().leave(world) else {
        return;
    };
    let answer = answer_of(ended);
    if let Pending::Child {
        named: Some(id), ..
    } = &waiter.pending
    {
        waiter.named.insert(id.clone(), answer.clone());
    }
    waiter.record.push(answer);
    parent.borrow_mut().queue.push_back(waiter);
}

impl World {
    /// Removes the invocation that waits for a child from the waiting invocations.
    fn leave(&mut self, child: &Rc<RefCell<World>>) -> Option<engine::Invocation> {
        if self.is_over() {
            return None;
        }
        let i = self.waiters.iter().position(
            |w| matches!(&w.pending, Pending::Child { world, .. } if Rc::ptr_eq(world, child)),
        )?;
        Some(self.waiters.remove(i))
    }

    /// The result: the result of the base stop event, or the whole body of any other.
    pub fn result(&self) -> Option<Result<Raw>> {
        let (name, body) = self.stop.as_ref()?;
        if name != "StopEvent" {
            return Some(Ok(body.clone()));
        }
        Some(
            body.read::<Value>()
                .and_then(|body| match body.get("result") {
                    Some(result) => Raw::of(result),
                    None => Ok(Raw::default()),
                }),
        )
    }
}
