//! Functions that replace granted resources.

use std::rc::Rc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Session;
use super::calls::Exchange;
use crate::cbor::Decoder;
use crate::error::{Error, Result, code};
use crate::value::{Raw, Value};

/// Answers a method and a payload.
pub type Answerer = Rc<dyn Fn(&str, Raw) -> Result<Raw>>;

impl Session {
    /// Replaces a granted resource by a function. The function receives the method and
    /// the payload; an error that it returns becomes the call's error. For the kind
    /// `http` the payload is an [`HttpRequest`](crate::HttpRequest) and the answer an
    /// [`HttpResponse`](crate::HttpResponse).
    ///
    /// ```
    /// # use weft::prelude::*;
    /// # use weft::testing::Session;
    /// # #[derive(StartEvent)] struct StartEvent;
    /// # #[step] fn start(ctx: &Context, _: StartEvent) -> Result<Stop> {
    /// #     Ok(Stop::new(ctx.http("crm").get("a")?.text()?))
    /// # }
    /// # workflow!("w", resources = [http("crm")], steps = [start]);
    /// # fn main() {
    /// let session = Session::new(&WORKFLOW).resource("crm", |_: &str, r: HttpRequest| {
    ///     let body = Bytes(format!("customer {}", r.path).into_bytes());
    ///     Ok(HttpResponse { status: 200, body, ..Default::default() })
    /// });
    /// # assert_eq!(session.run(&()).unwrap().result::<String>().unwrap(), "customer a");
    /// # }
    /// ```
    #[must_use]
    pub fn resource<P: DeserializeOwned, A: Serialize>(
        self,
        name: &str,
        call: impl Fn(&str, P) -> Result<A> + 'static,
    ) -> Self {
        let answer = move |method: &str, payload: Raw| {
            let payload = payload.read().map_err(|e| e.context("payload"))?;
            Raw::of(&call(method, payload)?)
        };
        let mut root = self.place.root.borrow_mut();
        root.resources.insert(name.to_owned(), Rc::new(answer));
        drop(root);
        self
    }
}

impl Exchange {
    /// Answers a `call_resource`.
    pub fn call_resource(&self, request: &mut Decoder) -> Result<Raw> {
        let (name, method) = (request.text()?, request.text()?);
        let payload: Raw = request.value()?;
        // The function may do what it likes, so nothing is held meanwhile.
        let answer = {
            let world = self.world.borrow();
            if !asks_for(&world.workflow.manifest()?, name) {
                return Err(Error::new(
                    code::FAILED_PRECONDITION,
                    format_args!(
                        "the workflow does not ask for the resource {name}: workflow!(..., resources = [http(\"{name}\")])"
                    ),
                ));
            }
            world.place.root.borrow().resources.get(name).cloned()
        };
        let answer = answer.ok_or_else(|| {
            Error::new(
                code::PERMISSION_DENIED,
                format_args!(
                    "the resource {name} is not granted: give the session one, .resource(\"{name}\", ...)"
                ),
            )
        })?;
        answer(method, payload)
    }
}

/// Whether a workflow asks for a resource.
fn asks_for(manifest: &Value, name: &str) -> bool {
    let list = manifest.get("resources").and_then(Value::as_list);
    list.unwrap_or_default()
        .iter()
        .any(|r| r.get("name").and_then(Value::as_str) == Some(name))
}
