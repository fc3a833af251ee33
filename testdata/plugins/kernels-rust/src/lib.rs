//! A guest to measure with, as `kernels` is in Go: its input names a piece of
//! ordinary work and how often to do it, and its output is a checksum. With the
//! feature `echo` it is a guest that hands back what it is given, and with the
//! feature `extism` the same for Extism's hosts.

#[cfg(not(feature = "extism"))]
mod boundary;
#[cfg(all(feature = "echo", not(feature = "extism")))]
mod echo;
#[cfg(feature = "extism")]
mod extism;

#[cfg(not(feature = "echo"))]
mod cbor;
#[cfg(not(feature = "echo"))]
mod kernels;
#[cfg(not(feature = "echo"))]
mod regexp;
#[cfg(not(feature = "echo"))]
mod runaway;
#[cfg(not(feature = "echo"))]
mod sha256;
#[cfg(not(feature = "echo"))]
mod step;
