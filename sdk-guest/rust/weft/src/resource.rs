//! What lies outside of the workflow: resources that the operator grants, for
//! `workflow!(..., resources = [...])`.
//!
//! A workflow asks for a resource by a name and a kind, and its steps call it by
//! that name. Which service that is, and with what secrets, is the operator's to
//! say.
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

/// A resource that a workflow asks for.
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
    /// Says to the operator what it is for.
    pub const fn description(self, text: &'static str) -> Self {
        Resource {
            description: text,
            ..self
        }
    }

    /// Lets runs start where it is not granted: then calls of it fail with the
    /// code `permission_denied`.
    pub const fn optional(self) -> Self {
        Resource {
            optional: true,
            ..self
        }
    }

    /// The resources as the manifest has them.
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
    /// Calls a resource that the operator has granted, and gives what it answers.
    /// The payload is whatever an event may hold, `()` is none. Nothing of the
    /// plugin runs or is held in memory meanwhile.
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
    /// The answer is kept: when the step is tried again, the same call (the same
    /// resource, method and payload, as the first, second, ... of its kind) gives
    /// the same answer, and the outside is not asked twice. A call that failed and
    /// may be tried again is made again then, under the same key, unless the
    /// operator has forbidden that.
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

    /// The granted resource of that name and of the kind `http`, to make requests
    /// with.
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
    /// It is of use as long as the context is.
    context: PhantomData<&'a ()>,
}

impl Http<'_> {
    /// Makes a request and gives the answer, whatever its status.
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
    /// service is not there (`unavailable`), does not answer in time (`timeout`),
    /// answers too much (`limit_exceeded`).
    pub fn send(&self, request: &HttpRequest) -> Result<HttpResponse> {
        let answer = call(self.name, "request", cbor::to_vec(request))?;
        cbor::from_slice(&answer).map_err(|e| Error::misuse(e).context(What(self.name)))
    }

    /// Makes a GET request for a URL, or for a path below the `base_url` of the
    /// resource. Errors are those of [`Http::send`].
    pub fn get(&self, place: &str) -> Result<HttpResponse> {
        self.send(&HttpRequest::new("GET", place))
    }
}

/// A request, of either a URL or a path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HttpRequest {
    /// GET if it is empty.
    pub method: String,
    /// The whole URL.
    pub url: String,
    /// What is below the `base_url` of the resource.
    pub path: String,
    /// Parameters for the end of the URL.
    pub query: BTreeMap<String, String>,
    /// Headers.
    pub headers: BTreeMap<String, String>,
    /// What is sent.
    pub body: Vec<u8>,
    /// Of the whole, at most that of the resource; without it that one.
    pub timeout: Option<Duration>,
    /// See [`HttpRequest::expect_success`].
    pub expect_success: bool,
}

impl HttpRequest {
    /// A request for a URL, or for a path below the `base_url` of the resource.
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

    /// Adds a parameter to the end of the URL.
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

    /// Sets what is sent.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Limits the whole request; what the operator has set counts if it is less.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Makes an answer whose status is not 200 to 299 an error, which the step's
    /// retry policy may have tried again if that may help: after 408, 425, 429 and
    /// from 500 on.
    #[must_use]
    pub fn expect_success(mut self) -> Self {
        self.expect_success = true;
        self
    }
}

/// Leaves out what is not set.
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

/// Bytes of somebody else.
struct Octets<'a>(&'a [u8]);

impl Serialize for Octets<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

/// For whoever stands for a service in a test.
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
    /// What came.
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
    /// It is not UTF-8.
    pub fn text(&self) -> Result<&str> {
        Ok(std::str::from_utf8(&self.body.0)?)
    }
}
