//! Printed lines, and the message of a panic.

use std::fmt;

use crate::boundary;

/// Prints a line, which becomes a record of the run's log. See
/// [`println!`](crate::println).
#[doc(hidden)]
pub fn print(line: fmt::Arguments<'_>) {
    boundary::print(1, &line.to_string());
}

/// Prints a line, like the standard macro of the same name, which prints nothing in a
/// guest. The line becomes a record of the run's log. If there is a context, prefer
/// [`Context::info`](crate::Context::info).
#[macro_export]
macro_rules! println {
    () => { $crate::__private::print(::core::format_args!("")) };
    ($($argument:tt)+) => { $crate::__private::print(::core::format_args!($($argument)+)) };
}

/// Prints a panic's message before the panic ends in a trap: the host shows the end of the output
/// of a guest that trapped. The hook is set when the plugin is described, so it is in the image
/// that every invocation starts from.
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

/// A native build uses the standard hook.
#[cfg(not(target_arch = "wasm32"))]
pub fn install() {}
