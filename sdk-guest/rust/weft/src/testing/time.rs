//! What happens at a time: the end of a sleep, the next attempt of a step, and what
//! takes too long. The clock of a test stands still while steps compute.

use std::cell::RefCell;
use std::rc::Rc;

use super::calls::answer_of;
use super::engine::{self, Invocation, World};
use super::place::Root;
use super::wait::Pending;
use crate::cbor;
use crate::error::{Error, code};

/// How long cleaning up after a run may take.
const GRACE: i64 = 10_000_000_000;

/// What is due.
#[derive(Clone, Copy, PartialEq)]
enum Due {
    /// The end of a sleep, or the next attempt of a step: what nobody from outside
    /// can bring about.
    Pause,
    /// The end of a wait that a test may still answer.
    Wait,
    /// The timeout of a step that waits, or of the run.
    Timeout,
}

/// Lets all happen that can in the runs of a test, and time pass where nothing else
/// can happen but the end of a pause.
pub fn settle(root: &Rc<RefCell<Root>>) {
    loop {
        while let Some(world) = worlds(root).into_iter().find(|w| w.borrow().is_ready()) {
            engine::work(&world);
        }
        let pauses = timers(root).iter().any(|(_, _, due)| *due == Due::Pause);
        match first(root) {
            Some((world, at, due)) if pauses && due != Due::Wait => fire(root, &world, at),
            _ => return,
        }
    }
}

/// Lets time pass, and what comes due with it happen.
pub fn advance(root: &Rc<RefCell<Root>>, time: i64) {
    let end = root.borrow().clock.saturating_add(time);
    while let Some((world, at, _)) = first(root).filter(|(_, at, _)| *at <= end) {
        fire(root, &world, at);
        settle(root);
    }
    let mut root = root.borrow_mut();
    root.clock = root.clock.max(end);
}

fn worlds(root: &Rc<RefCell<Root>>) -> Vec<Rc<RefCell<World>>> {
    let mut root = root.borrow_mut();
    root.worlds.retain(|world| world.strong_count() > 0);
    root.worlds.iter().filter_map(|w| w.upgrade()).collect()
}

type Timer = (Rc<RefCell<World>>, i64, Due);

fn timers(root: &Rc<RefCell<Root>>) -> Vec<Timer> {
    let all = worlds(root).into_iter().flat_map(|world| {
        let due = world.borrow().due();
        due.into_iter()
            .map(move |(at, due)| (world.clone(), at, due))
    });
    all.collect()
}

fn first(root: &Rc<RefCell<Root>>) -> Option<Timer> {
    timers(root).into_iter().min_by_key(|(_, at, _)| *at)
}

fn fire(root: &Rc<RefCell<Root>>, world: &Rc<RefCell<World>>, at: i64) {
    let now = root.borrow().clock.max(at);
    root.borrow_mut().clock = now;
    world.borrow_mut().come_due(now);
    engine::work(world);
}

impl World {
    fn now(&self) -> i64 {
        self.place.root.borrow().clock
    }

    fn due(&self) -> Vec<(i64, Due)> {
        let mut all = Vec::new();
        if self.is_over() {
            return all;
        }
        all.extend(self.delayed.iter().map(|i| (i.due, Due::Pause)));
        for waiter in &self.waiters {
            match &waiter.pending {
                Pending::Until(at) => all.push((*at, Due::Pause)),
                Pending::Event { due: Some(at), .. } => all.push((*at, Due::Wait)),
                _ => {}
            }
            all.extend(self.step_timeout(waiter).map(|at| (at, Due::Timeout)));
        }
        all.extend(self.deadline.map(|at| (at, Due::Timeout)));
        all
    }

    /// When an attempt that waits takes too long.
    fn step_timeout(&self, invocation: &Invocation) -> Option<i64> {
        let time = self.steps()[invocation.step].timeout?;
        let at = invocation.tried.saturating_add_unsigned(time);
        (time > 0).then_some(at)
    }

    /// Lets one thing happen that is due.
    fn come_due(&mut self, now: i64) {
        if let Some(i) = self.delayed.iter().position(|i| i.due <= now) {
            let invocation = self.delayed.remove(i);
            self.queue.push_back(invocation);
            return;
        }
        let over = |i: &Invocation| match &i.pending {
            Pending::Until(at) => *at <= now,
            Pending::Event { due, .. } => due.is_some_and(|at| at <= now),
            _ => false,
        };
        if let Some(i) = self.waiters.iter().position(over) {
            let mut waiter = self.waiters.remove(i);
            waiter.record.push(match waiter.pending {
                Pending::Until(_) => answer_of(cbor::to_vec(&()).map_err(Error::misuse)),
                _ => answer_of(Err(Error::new(
                    code::TIMEOUT,
                    "the event has not come in time",
                ))),
            });
            self.queue.push_back(waiter);
            return;
        }
        let late = |i: &Invocation| self.step_timeout(i).is_some_and(|at| at <= now);
        if let Some(i) = self.waiters.iter().position(late) {
            let waiter = self.waiters.remove(i);
            let decl = &self.steps()[waiter.step];
            let time = seconds(decl.timeout.unwrap_or_default());
            let message = format_args!("step {} timed out after {time}", decl.name);
            let error = Error::new(code::TIMEOUT, message);
            self.fail(waiter, error);
            return;
        }
        if self.deadline.take_if(|at| *at <= now).is_some() {
            self.time_out();
        }
    }

    fn time_out(&mut self) {
        if let Some(ending) = self.ending.take() {
            self.failed = Some(ending); // it has had its time to clean up
            return;
        }
        let time = seconds(self.timeout().unsigned_abs());
        let message = format_args!("Workflow timed out after {time}");
        self.clean_up(Error::new(code::TIMEOUT, message));
    }

    /// In nanoseconds; 0: none. The default one counts work, for which the clock of a
    /// test stands still.
    pub fn timeout(&self) -> i64 {
        let set = self.workflow.time_limit();
        set.map_or(0, |t| i64::try_from(t).unwrap_or(i64::MAX))
    }

    /// Ends the run, which is cleaned up after by the steps that catch that.
    pub fn clean_up(&mut self, cause: Error) {
        if self.is_over() || self.ending.is_some() {
            self.failed.get_or_insert(cause);
            return;
        }
        let elapsed = self.now() - self.begun;
        self.forget();
        let cleaners = self.cleaners(cause.code());
        for step in &cleaners {
            self.enqueue_failure(*step, None, "", &cause, elapsed);
        }
        if cleaners.is_empty() {
            self.failed = Some(cause);
        } else {
            self.deadline = Some(self.now().saturating_add(GRACE));
            self.ending = Some(cause);
        }
    }
}

/// A time for people.
fn seconds(nanoseconds: u64) -> String {
    format!("{:?}s", nanoseconds as f64 / 1e9)
}
