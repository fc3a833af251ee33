//! What a guest prints: lines of its own, and the last words of a panic.

use std::fmt;

use crate::boundary;

/// Prints a line, which becomes a record of the run's log. See
/// [`println!`](crate::println).
#[doc(hidden)]
pub fn print(line: fmt::Arguments<'_>) {
    boundary::print(1, &line.to_string());
}

/// Prints a line, as the standard macro of that name does, which prints
/// nothing in a guest. The line becomes a record of the run's log. Where there
/// is a context, prefer [`Context::info`](crate::Context::info).
#[macro_export]
macro_rules! println {
    () => { $crate::__private::print(::core::format_args!("")) };
    ($($argument:tt)+) => { $crate::__private::print(::core::format_args!($($argument)+)) };
}

/// Lets a panic say its message before it ends in a trap: the host shows the
/// end of what a trapped guest printed. It is in place from the description on,
/// and so in the image that every invocation starts from.
#[cfg(target_arch = "wasm32")]
pub fn install() {
    use std::sync::atomic::{AtomicBool, Ordering};
    static DONE: AtomicBool = AtomicBool::new(false);
    if DONE.swap(true, Ordering::Relaxed) {
        return;
    }
    std::panic::set_hook(Box::new(|info| {
        let mut message = info.payload_as_str().unwrap_or("(no message)");
        if message == "time not implemented on this platform" {
            message = "a guest has no clock of its own: use ctx.now()";
        }
        let line = match info.location() {
            Some(place) => format!("panic: {message} ({}:{})", place.file(), place.line()),
            None => format!("panic: {message}"),
        };
        boundary::print(2, &line);
    }));
}

/// A native build has the standard hook.
#[cfg(not(target_arch = "wasm32"))]
pub fn install() {}
