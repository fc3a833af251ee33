//! Errors with a code.

use std::fmt;

use serde::Serialize;

use crate::cbor::{Decoder, Encoder};
use crate::value::{Raw, Value};

/// The result of a step and of host calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The codes of errors that host calls return.
pub mod code {
    /// The request is malformed, or the SDK was misused.
    pub const INVALID_MESSAGE: &str = "invalid_message";
    /// There is no value at the path.
    pub const NOT_FOUND: &str = "not_found";
    /// A test of a batch failed.
    pub const CONFLICT: &str = "conflict";
    /// The call is not possible with this value or at this moment.
    pub const FAILED_PRECONDITION: &str = "failed_precondition";
    /// The operator has not granted access.
    pub const PERMISSION_DENIED: &str = "permission_denied";
    /// A limit of the host is exceeded.
    pub const LIMIT_EXCEEDED: &str = "limit_exceeded";
    /// The time limit was reached.
    pub const TIMEOUT: &str = "timeout";
    /// The state would violate its schema.
    pub const SCHEMA_VIOLATION: &str = "schema_violation";
    /// The host cannot serve the call, now or at all.
    pub const UNAVAILABLE: &str = "unavailable";
    /// An internal error of the host.
    pub const INTERNAL: &str = "internal";
}

/// An error with a code for programs and a message for people. A step that returns an
/// error fails with it.
///
/// The operator `?` converts any standard error to this type, with the code `error`.
/// (That is why this type does not implement [`std::error::Error`] itself.)
///
/// ```
/// use weft::{Error, Result};
///
/// fn parse(text: &str) -> Result<u32> {
///     if text.is_empty() {
///         return Err(Error::new("empty", "nothing to parse").not_retryable());
///     }
///     Ok(text.trim().parse()?)
/// }
///
/// assert_eq!(parse("").unwrap_err().code(), "empty");
/// assert_eq!(parse("x").unwrap_err().code(), "error");
/// ```
#[derive(Clone)]
pub struct Error(Box<Parts>);

#[derive(Clone, Debug, Default)]
struct Parts {
    code: String,
    message: String,
    retryable: Option<bool>,
    data: Option<Raw>,
}

impl Error {
    /// Makes an error with a code and a message.
    pub fn new(code: impl Into<String>, message: impl fmt::Display) -> Self {
        Error(Box::new(Parts {
            code: code.into(),
            message: message.to_string(),
            ..Parts::default()
        }))
    }

    /// Marks the failure as final: it is not retried, whatever the step's retry rules
    /// say.
    #[must_use]
    pub fn not_retryable(mut self) -> Self {
        self.0.retryable = Some(false);
        self
    }

    /// Attaches a value for the code that handles the failure.
    #[must_use]
    pub fn with_data<T: Serialize + ?Sized>(mut self, data: &T) -> Self {
        // Report why the data is missing instead of failing again.
        let data = Raw::of(data).or_else(|e| Raw::of(e.message()));
        self.0.data = data.ok();
        self
    }

    /// The code.
    pub fn code(&self) -> &str {
        &self.0.code
    }

    /// The message, without the code.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Whether the error says that a retry is possible; `None` leaves the decision to the
    /// retry rules.
    pub fn retryable(&self) -> Option<bool> {
        self.0.retryable
    }

    /// The attached value.
    pub fn data(&self) -> Option<Value> {
        self.0.data.as_ref()?.read().ok()
    }

    /// The error of a call that the SDK refuses.
    #[cold]
    pub(crate) fn misuse(message: impl fmt::Display) -> Self {
        Error::new(code::INVALID_MESSAGE, message)
    }

    /// Prepends the attempted operation to the message.
    #[cold]
    pub fn context(mut self, what: impl fmt::Display) -> Self {
        self.0.message = format!("{what}: {}", self.0.message);
        self
    }

    /// Appends advice to the message.
    #[cold]
    pub(crate) fn advise(mut self, advice: &str) -> Self {
        self.0.message.push_str("; ");
        self.0.message.push_str(advice);
        self
    }

    /// Writes the ABI's map.
    pub(crate) fn encode(&self, encoder: &mut Encoder) {
        let parts = &*self.0;
        let n = 2 + usize::from(parts.data.is_some()) + usize::from(parts.retryable.is_some());
        encoder.map(n);
        encoder.text("code");
        encoder.text(&parts.code);
        if let Some(data) = &parts.data {
            encoder.text("data");
            encoder.raw(data.bytes());
        }
        encoder.text("message");
        encoder.text(&parts.message);
        if let Some(retryable) = parts.retryable {
            encoder.text("retryable");
            encoder.bool(retryable);
        }
    }

    /// Reads the ABI's map.
    pub(crate) fn decode(decoder: &mut Decoder) -> Result<Self, crate::cbor::Error> {
        let mut parts = Parts::default();
        for _ in 0..decoder.map()? {
            match decoder.text()? {
                "code" => parts.code = decoder.text()?.to_owned(),
                "message" => parts.message = decoder.text()?.to_owned(),
                "retryable" => parts.retryable = Some(decoder.bool()?),
                "data" => parts.data = Some(decoder.value()?),
                _ => decoder.skip()?,
            }
        }
        Ok(Error(Box::new(parts)))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code(), self.message())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<E: std::error::Error> From<E> for Error {
    fn from(error: E) -> Self {
        Error::new("error", error)
    }
}
