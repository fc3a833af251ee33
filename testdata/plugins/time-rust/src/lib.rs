//! A guest for tests of what Rust sees of the world on wasm32-unknown-unknown,
//! where std has no system below it: no clock, no files, no threads. The input
//! names the case.

#[path = "../../kernels-rust/src/boundary.rs"]
mod boundary;

use std::cell::Cell;
use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

static STEPS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static LOCAL: Cell<u32> = const { Cell::new(0) };
    static MAP: HashMap<u32, ()> = numbers();
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_describe() {
    // A panic says nothing by itself: what it would write to stderr goes nowhere.
    std::panic::set_hook(Box::new(|info| boundary::show(info.to_string().as_bytes())));
    MAP.with(|m| assert_eq!(m.len(), 64));
    boundary::output(&[0x82, 0, 0xf6]);
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_step(len: u32) -> i32 {
    let case = boundary::input(len);
    let seen = match case.as_slice() {
        b"order" => format!("{:?} {:?}", MAP.with(walk), walk(&numbers())),
        b"statics" => statics(),
        b"world" => world(),
        b"files" => files(),
        b"vars" => format!("{}", std::env::vars().count()),
        b"panic" => panic!("a panic's message"),
        b"index" => [1, 2, 3][case.len()].to_string(),
        b"clock" => format!("{:?}", SystemTime::now()),
        b"instant" => format!("{:?}", Instant::now()),
        b"sleep" => {
            std::thread::sleep(Duration::from_millis(1));
            "slept".into()
        }
        _ => "no such case".into(),
    };
    boundary::answer(0, seen.as_bytes())
}

fn numbers() -> HashMap<u32, ()> {
    (0..64).map(|n| (n, ())).collect()
}

fn walk(m: &HashMap<u32, ()>) -> Vec<u32> {
    m.keys().copied().collect()
}

fn statics() -> String {
    let steps = STEPS.fetch_add(1, Ordering::Relaxed);
    let local = LOCAL.with(|n| n.replace(n.get() + 1));
    format!("steps {steps}, local {local}")
}

fn world() -> String {
    let thread = std::thread::Builder::new().spawn(|| ()).is_ok();
    let stdout = std::io::stdout().write_all(b"to nowhere").is_ok();
    format!(
        "args {}, var {:?}, stdin {:?}, stdout {stdout}, thread {thread}",
        std::env::args().count(),
        std::env::var("HOME").ok(),
        std::io::read_to_string(std::io::stdin()).ok(),
    )
}

fn files() -> String {
    let tries = [
        ("read", fs::read("/etc/passwd").is_err()),
        ("write", fs::write("/tmp/x", "x").is_err()),
        ("list", fs::read_dir(".").is_err()),
        (
            "connect",
            std::net::TcpStream::connect("127.0.0.1:80").is_err(),
        ),
        ("run", std::process::Command::new("true").status().is_err()),
    ];
    tries
        .map(|(name, failed)| format!("{name} {}", if failed { "failed" } else { "succeeded" }))
        .join(", ")
}
