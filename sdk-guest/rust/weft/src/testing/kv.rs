//! Values in memory that replace a granted resource of the kind `kv`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Session;
use crate::error::{Error, Result, code};
use crate::value::Value;

/// The values of a resource of the kind `kv`. Clones share the values, and so do sessions
/// with the same values.
///
/// There are no limits, unlike on a server.
#[derive(Clone, Default)]
pub struct Values(Rc<RefCell<Kept>>);

#[derive(Default)]
struct Kept {
    last: i64,
    items: BTreeMap<String, (i64, Value)>,
}

impl Session {
    /// Grants a resource of the kind `kv`.
    ///
    /// ```
    /// # use weft::kv::kv;
    /// # use weft::prelude::*;
    /// # use weft::testing::{Session, Values};
    /// # #[derive(StartEvent)] struct StartEvent;
    /// # #[step] fn start(ctx: &Context, _: StartEvent) -> Result<Stop> {
    /// #     Ok(Stop::new(ctx.kv("visits").increment("home", 1)?))
    /// # }
    /// # workflow!("w", resources = [kv("visits")], steps = [start]);
    /// # fn main() {
    /// let visits = Values::default();
    /// visits.set("home", &6).unwrap();
    /// let run = Session::new(&WORKFLOW).kv("visits", &visits).run(&()).unwrap();
    /// assert_eq!(run.result::<i64>().unwrap(), 7);
    /// assert_eq!(visits.get::<i64>("home").unwrap(), Some(7));
    /// # }
    /// ```
    #[must_use]
    pub fn kv(self, name: &str, values: &Values) -> Self {
        let values = values.clone();
        self.resource(name, move |method, payload: Value| {
            values.0.borrow_mut().call(method, &payload)
        })
    }
}

impl Values {
    /// Sets the value of a key, as a step would.
    pub fn set<T: Serialize + ?Sized>(&self, key: &str, value: &T) -> Result<()> {
        let payload = Value::map([("key", key.into()), ("value", Value::of(value)?)]);
        self.0.borrow_mut().call("set", &payload).map(drop)
    }

    /// Reads the value of a key.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>> {
        let kept = self.0.borrow();
        kept.items.get(key).map(|(_, v)| v.read()).transpose()
    }

    /// The keys, in order.
    pub fn keys(&self) -> Vec<String> {
        self.0.borrow().items.keys().cloned().collect()
    }
}

impl Kept {
    fn call(&mut self, method: &str, payload: &Value) -> Result<Value> {
        let text = |name| payload.get(name).and_then(Value::as_str).unwrap_or("");
        let key = text("key");
        if method == "list" {
            return Ok(self.list(text("prefix"), text("after"), payload));
        }
        if key.is_empty() || key.contains(char::is_control) {
            return Err(Error::new(
                code::INVALID_MESSAGE,
                "the key is missing, empty or has a control character",
            ));
        }
        let old = self.items.get(key);
        let version = old.map_or(0, |(version, _)| *version);
        if let Some(wanted) = payload.get("if_version").and_then(Value::as_i64)
            && wanted != version
        {
            let message = format_args!("the key {key:?} has version {version}, not {wanted}");
            return Err(Error::new(code::CONFLICT, message));
        }
        match method {
            "get" => Ok(old.map_or(Value::Null, |(version, value)| {
                Value::map([("value", value.clone()), ("version", (*version).into())])
            })),
            "set" => {
                let value = payload.get("value").cloned().unwrap_or(Value::Null);
                Ok(Value::map([("version", self.put(key, value).into())]))
            }
            "increment" => {
                let by = payload.get("by").and_then(Value::as_i64).unwrap_or(1);
                let number = old.map_or(Some(0), |(_, value)| value.as_i64());
                let sum = number.and_then(|n| n.checked_add(by)).ok_or_else(|| {
                    let message = format_args!("what is under the key {key:?} cannot be added to");
                    Error::new(code::FAILED_PRECONDITION, message)
                })?;
                let version = self.put(key, sum.into());
                Ok(Value::map([
                    ("value", Value::from(sum)),
                    ("version", version.into()),
                ]))
            }
            "delete" => {
                let deleted = self.items.remove(key).is_some();
                Ok(Value::map([("deleted", deleted.into())]))
            }
            _ => Err(Error::new(
                code::NOT_FOUND,
                format_args!("a resource of the kind kv has no method {method:?}"),
            )),
        }
    }

    fn put(&mut self, key: &str, value: Value) -> i64 {
        self.last += 1;
        self.items.insert(key.to_owned(), (self.last, value));
        self.last
    }

    fn list(&self, prefix: &str, after: &str, payload: &Value) -> Value {
        let limit = payload.get("limit").and_then(Value::as_i64).unwrap_or(100);
        let values = payload.get("values").and_then(Value::as_bool) == Some(true);
        let mut found = self
            .items
            .iter()
            .filter(|(key, _)| key.starts_with(prefix) && key.as_str() > after)
            .peekable();
        let mut items = vec![];
        let mut last = "";
        while items.len() < usize::try_from(limit).unwrap_or(1) {
            let Some((key, (version, value))) = found.next() else {
                break;
            };
            let mut item = vec![("key", key.as_str().into()), ("version", (*version).into())];
            if values {
                item.push(("value", value.clone()));
            }
            items.push(Value::map(item));
            last = key;
        }
        let mut page = vec![("items", Value::list(items))];
        if found.peek().is_some() {
            page.push(("next", last.into()));
        }
        Value::map(page)
    }
}
