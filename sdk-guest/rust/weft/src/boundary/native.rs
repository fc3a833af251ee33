//! The imports in a native build: a test sets a host for the thread.

use std::cell::RefCell;
use std::rc::Rc;

use super::Answer;

/// A host of one invocation, or of one description.
pub trait Host {
    /// Answers a call of the import with this name.
    fn call(&self, name: &str, request: &[u8]) -> Answer;
    /// The invocation's input.
    fn input(&self) -> Vec<u8>;
    /// Receives the result, or the manifest.
    fn output(&self, output: &[u8]);
    /// Receives a printed line.
    fn print(&self, line: &str);
}

thread_local! {
    static HOST: RefCell<Option<Rc<dyn Host>>> = const { RefCell::new(None) };
}

/// Calls a function with a host, and then restores the previous host.
pub fn with<T>(host: Rc<dyn Host>, run: impl FnOnce() -> T) -> T {
    struct Restore(Option<Rc<dyn Host>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            HOST.set(self.0.take());
        }
    }
    let _restore = Restore(HOST.replace(Some(host)));
    run()
}

fn host() -> Rc<dyn Host> {
    HOST.with_borrow(|host| host.clone())
        .expect("no host: in a native build steps run only in tests, see weft::testing")
}

macro_rules! calls {
    ($($name:ident)*) => {$(
        pub fn $name(request: &[u8]) -> Answer {
            host().call(stringify!($name), request)
        }
    )*};
}

calls! {
    state_get state_edit state_begin state_commit state_abort
    send_event collect_events write_event_to_stream call_resource
    wait_for_event run_workflow sleep now random log
}

pub fn input(_: usize) -> Vec<u8> {
    host().input()
}

pub fn output(output: &[u8]) {
    host().output(output);
}

pub fn print(_: u32, line: &str) {
    match HOST.with_borrow(|host| host.clone()) {
        Some(host) => host.print(line),
        None => println!("{line}"),
    }
}
