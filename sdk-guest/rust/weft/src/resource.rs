//! External resources that the operator grants, for `workflow!(..., resources = [...])`.
//!
//! A workflow declares a resource by a name and a kind, and its steps call the resource
//! by that name. The operator decides which service the name stands for, and with which
//! secrets.
//!
//! ```
//! use weft::prelude::*;
//! # #[derive(StartEvent)] struct StartEvent { customer: String }
//!
//! #[step]
//! fn look(ctx: &Context, ev: StartEvent) -> Result<Stop> {
//!     let answer = ctx.http("crm").get(&format!("customers/{}", ev.customer))?;
//!     Ok(Stop::new(answer.text()?))
//! }
//!
//! workflow!("sell", resources = [http("crm").description("our customers")], steps = [look]);
//! # fn main() {}
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::boundary;
use crate::cbor::{self, Encoder};
use crate::context::{Context, check};
use crate::data::{self, Data, Open};
use crate::duration::nanoseconds;
use crate::error::{Error, Result};
use crate::value::{Bytes, Value};

/// A resource that a workflow requires.
#[derive(Clone, Copy)]
pub struct Resource {
    name: &'static str,
    kind: &'static str,
    description: &'static str,
    optional: bool,
}

/// A resource of the kind `http`, which makes requests; see [`Context::http`].
pub const fn http(name: &'static str) -> Resource {
    resource(name, "http")
}

/// A resource of any kind, for [`Context::call`].
pub const fn resource(name: &'static str, kind: &'static str) -> Resource {
    assert!(
        !name.is_empty() && name.len() <= 128 && !kind.is_empty(),
        "a resource has a name of 1 to 128 bytes, and a kind"
    );
    Resource {
        name,
        kind,
        description: "",
        optional: false,
    }
}

impl Resource {
    /// Tells the operator what the resource is for.
    pub const fn description(self, text: &'static str) -> Self {
        Resource {
            description: text,
            ..self
        }
    }

    /// Allows runs to start without a grant of the resource. Its calls then fail with the
    /// code `permission_denied`.
    pub const fn optional(self) -> Self {
        Resource {
            optional: true,
            ..self
        }
    }

    /// The resources in the form of the manifest.
    #[doc(hidden)]
    pub fn manifest(list: &[Resource]) -> Value {
        Value::list(list.iter().map(|r| {
            let mut entry = Value::map([("kind", r.kind.into()), ("name", r.name.into())]);
            if r.optional {
                data::set(&mut entry, "optional", true.into());
            }
            if !r.description.is_empty() {
                data::set(&mut entry, "description", r.description.into());
            }
            entry
        }))
    }
}

impl<S> Context<S> {
    /// Calls a resource that the operator has granted, and returns the answer. The
    /// payload is any value that an event may hold; `()` means none. While the call runs,
    /// the plugin uses neither CPU nor memory.
    ///
    /// ```
    /// # use weft::prelude::*;
    /// # fn step(ctx: &Context) -> Result<()> {
    /// let payload = Value::map([("prompt", "a joke".into())]);
    /// let joke: Value = ctx.call("llm", "chat", &payload)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The answer is recorded. When the step is retried, the same call (the same
    /// resource, method and payload, as the first, second, ... of its kind) returns the
    /// same answer without a further request to the outside. A retried step repeats a
    /// failed call that may be retried, under the same key, unless the operator has
    /// forbidden repetition.
    pub fn call<T: DeserializeOwned>(
        &self,
        resource: &str,
        method: &str,
        payload: &(impl Serialize + ?Sized),
    ) -> Result<T> {
        let what = What(resource);
        let answer = call(resource, method, cbor::to_vec(payload))?;
        cbor::from_slice(&answer).map_err(|e| Error::misuse(e).context(what))
    }

    /// Returns the granted resource of the kind `http` with the given name, to make
    /// requests.
    pub fn http<'a>(&'a self, name: &'a str) -> Http<'a> {
        Http {
            name,
            context: PhantomData,
        }
    }
}

/// A call, for messages.
struct What<'a>(&'a str);

impl fmt::Display for What<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call \"{}\"", self.0)
    }
}

fn call(resource: &str, method: &str, payload: Result<Vec<u8>, cbor::Error>) -> Result<Vec<u8>> {
    let payload = payload.map_err(|e| Error::misuse(e).context(What(resource)))?;
    let mut request = Encoder::new();
    request.array(3);
    request.text(resource);
    request.text(method);
    request.raw(&payload);
    check(
        boundary::call_resource(&request.into_bytes()),
        What(resource),
    )
}

/// A granted resource of the kind `http`.
#[derive(Clone, Copy)]
pub struct Http<'a> {
    name: &'a str,
    /// The resource is usable as long as the context.
    context: PhantomData<&'a ()>,
}

impl Http<'_> {
    /// Makes a request and returns the answer, whatever its status.
    ///
    /// ```
    /// # use weft::prelude::*;
    /// # fn step(ctx: &Context) -> Result<()> {
    /// let order = HttpRequest::new("POST", "orders")
    ///     .header("Content-Type", "text/csv")
    ///     .body("tea,2")
    ///     .expect_success();
    /// let answer = ctx.http("crm").send(&order)?;
    /// ctx.info(answer.header("location").unwrap_or("nowhere"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The operator does not allow the request (the code `permission_denied`), the
    /// service is not reachable (`unavailable`), it does not answer in time (`timeout`),
    /// or its answer is too large (`limit_exceeded`).
    pub fn send(&self, request: &HttpRequest) -> Result<HttpResponse> {
        let answer = call(self.name, "request", cbor::to_vec(request))?;
        cbor::from_slice(&answer).map_err(|e| Error::misuse(e).context(What(self.name)))
    }

    /// Makes a GET request for a URL, or for a path relative to the `base_url` of the
    /// resource. Errors are those of [`Http::send`].
    pub fn get(&self, place: &str) -> Result<HttpResponse> {
        self.send(&HttpRequest::new("GET", place))
    }
}

/// A request for either a URL or a path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HttpRequest {
    /// The method; empty means GET.
    pub method: String,
    /// The full URL.
    pub url: String,
    /// The path relative to the `base_url` of the resource.
    pub path: String,
    /// Query parameters.
    pub query: BTreeMap<String, String>,
    /// The headers.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Vec<u8>,
    /// The limit on the whole request, at most the resource's; `None` means the
    /// resource's.
    pub timeout: Option<Duration>,
    /// See [`HttpRequest::expect_success`].
    pub expect_success: bool,
}

impl HttpRequest {
    /// Makes a request for a URL, or for a path relative to the `base_url` of the
    /// resource.
    pub fn new(method: impl Into<String>, place: &str) -> Self {
        let mut request = HttpRequest {
            method: method.into(),
            ..HttpRequest::default()
        };
        if place.starts_with("https://") || place.starts_with("http://") {
            place.clone_into(&mut request.url);
        } else {
            place.clone_into(&mut request.path);
        }
        request
    }

    /// Adds a query parameter.
    #[must_use]
    pub fn query(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.query.insert(name.into(), value.into());
        self
    }

    /// Sets a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Limits the whole request. A lower limit of the operator takes precedence.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Makes an answer with a status outside 200 to 299 an error. The step's retry policy
    /// may retry the error after the statuses 408, 425, 429, and 500 and above.
    #[must_use]
    pub fn expect_success(mut self) -> Self {
        self.expect_success = true;
        self
    }
}

/// Omits fields that are not set.
impl Serialize for HttpRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_struct("HttpRequest", 0)?;
        for (key, text) in [("url", &self.url), ("path", &self.path)] {
            if !text.is_empty() {
                map.serialize_field(key, text)?;
            }
        }
        if !self.body.is_empty() {
            map.serialize_field("body", &Octets(&self.body))?;
        }
        if !self.method.is_empty() {
            map.serialize_field("method", &self.method)?;
        }
        for (key, entries) in [("query", &self.query), ("headers", &self.headers)] {
            if !entries.is_empty() {
                map.serialize_field(key, entries)?;
            }
        }
        if let Some(timeout) = self.timeout {
            map.serialize_field("timeout", &nanoseconds(timeout))?;
        }
        if self.expect_success {
            map.serialize_field("expect_success", &true)?;
        }
        map.end()
    }
}

/// Borrowed bytes.
struct Octets<'a>(&'a [u8]);

impl Serialize for Octets<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

/// For tests that replace a service.
impl<'de> Deserialize<'de> for HttpRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(crate::Data)]
        struct Sent {
            #[weft(default)]
            method: String,
            #[weft(default)]
            url: String,
            #[weft(default)]
            path: String,
            #[weft(default)]
            query: BTreeMap<String, String>,
            #[weft(default)]
            headers: BTreeMap<String, String>,
            #[weft(default)]
            body: Bytes,
            timeout: Option<u64>,
            #[weft(default)]
            expect_success: bool,
        }
        let sent = Sent::deserialize(deserializer)?;
        Ok(HttpRequest {
            method: sent.method,
            url: sent.url,
            path: sent.path,
            query: sent.query,
            headers: sent.headers,
            body: sent.body.0,
            timeout: sent.timeout.map(Duration::from_nanos),
            expect_success: sent.expect_success,
        })
    }
}

impl Data for HttpRequest {
    fn schema(_: &mut Open) -> Value {
        Value::map([("type", "object".into())])
    }
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq, crate::Data)]
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// The headers; their names are in lower case.
    #[weft(default)]
    pub headers: BTreeMap<String, Vec<String>>,
    /// The body.
    #[weft(default)]
    pub body: Bytes,
}

impl HttpResponse {
    /// The first value of a header, whatever the case of its name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let name = name.to_ascii_lowercase();
        self.headers.get(&name)?.first().map(String::as_str)
    }

    /// The body as text.
    ///
    /// # Errors
    ///
    /// The body is not UTF-8.
    pub fn text(&self) -> Result<&str> {
        Ok(std::str::from_utf8(&self.body.0)?)
    }
}
