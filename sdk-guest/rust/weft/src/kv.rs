//! Values by key that all runs of a tenant share, independent of their sessions:
//! resources of the kind `kv`.
//!
//! ```
//! use weft::kv::kv;
//! use weft::prelude::*;
//! # #[derive(StartEvent)] struct StartEvent { page: String }
//!
//! #[step]
//! fn count(ctx: &Context, ev: StartEvent) -> Result<Stop> {
//!     let visits = ctx.kv("visits").increment(&ev.page, 1)?;
//!     Ok(Stop::new(visits))
//! }
//!
//! workflow!("visits", resources = [kv("visits")], steps = [count]);
//! # fn main() {}
//! ```

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::Context;
use crate::error::{Error, Result, code};
use crate::resource::{Resource, resource};
use crate::value::Value;

/// Bounds the attempts of [`Kv::update`], so that a step ends whatever other runs do.
const MOST_UPDATES: u32 = 100;

/// A resource of the kind `kv`, for `workflow!(..., resources = [...])`.
pub const fn kv(name: &'static str) -> Resource {
    resource(name, "kv")
}

impl<S> Context<S> {
    /// Returns the granted resource of the kind `kv` with the given name.
    pub fn kv<'a>(&'a self, name: &'a str) -> Kv<'a, S> {
        Kv {
            context: self,
            name,
        }
    }
}

/// A granted resource of the kind `kv`.
///
/// A write happens exactly once, and is committed together with the step's own progress.
/// After a crash, or in the step's next attempt, an answered call is not made again.
/// Calls therefore need no idempotency key. A fork or a failed attempt does not undo
/// writes.
///
/// The codes of errors are `conflict`, `limit_exceeded`, `failed_precondition` (an
/// increment of a value that is not a whole number) and `permission_denied`.
pub struct Kv<'a, S> {
    context: &'a Context<S>,
    name: &'a str,
}

impl<S> Kv<'_, S> {
    /// Reads the value of a key; `None` if the key has no value.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>> {
        Ok(self.entry(key)?.map(|(value, _)| value))
    }

    /// Reads the value of a key with its version. Versions are unique within the
    /// resource.
    pub fn entry<T: DeserializeOwned>(&self, key: &str) -> Result<Option<(T, i64)>> {
        let answer = self.ask("get", [("key", key.into())])?;
        match answer.get("value") {
            None => Ok(None),
            Some(value) => Ok(Some((value.read()?, number(&answer, "version")))),
        }
    }

    /// Sets the value of a key, and returns its new version.
    pub fn set<T: Serialize + ?Sized>(&self, key: &str, value: &T) -> Result<i64> {
        let payload = [("key", key.into()), ("value", Value::of(value)?)];
        Ok(number(&self.ask("set", payload)?, "version"))
    }

    /// Sets the value of a key if its version is still the given one; version 0 means
    /// that the key has no value.
    ///
    /// # Errors
    ///
    /// `conflict`: the key has a different version. Read again and decide anew, as
    /// [`Kv::update`] does. A step that fails with this error reads anew when it is
    /// retried.
    pub fn set_if<T: Serialize + ?Sized>(&self, key: &str, version: i64, value: &T) -> Result<i64> {
        let payload = [
            ("key", key.into()),
            ("value", Value::of(value)?),
            ("if_version", Value::Int(version)),
        ];
        Ok(number(&self.ask("set", payload)?, "version"))
    }

    /// Changes the value of a key without interference from others, and returns the new
    /// value. The function receives the present value, or the default, and is called
    /// again if another run changed the key first. If the function returns an error,
    /// nothing is written.
    ///
    /// ```
    /// # use weft::prelude::*;
    /// # fn step(ctx: &Context) -> Result<()> {
    /// let left = ctx.kv("shop").update("tea", |pounds: &mut i64| {
    ///     *pounds -= 2;
    ///     Ok(())
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn update<T: Serialize + DeserializeOwned + Default>(
        &self,
        key: &str,
        mut change: impl FnMut(&mut T) -> Result<()>,
    ) -> Result<T> {
        let mut tries = 1;
        loop {
            let (mut value, version) = self.entry(key)?.unwrap_or_default();
            change(&mut value)?;
            match self.set_if(key, version, &value) {
                Ok(_) => return Ok(value),
                Err(e) if e.code() != code::CONFLICT || tries == MOST_UPDATES => return Err(e),
                Err(_) => tries += 1,
            }
        }
    }

    /// Adds to the whole number of a key and returns the sum. A key without a value
    /// counts as 0.
    pub fn increment(&self, key: &str, by: i64) -> Result<i64> {
        let payload = [("key", key.into()), ("by", Value::Int(by))];
        Ok(number(&self.ask("increment", payload)?, "value"))
    }

    /// Removes a key, and returns whether it had a value.
    pub fn delete(&self, key: &str) -> Result<bool> {
        let answer = self.ask("delete", [("key", key.into())])?;
        Ok(answer.get("deleted").and_then(Value::as_bool) == Some(true))
    }

    /// Removes a key if its version is still the given one.
    ///
    /// # Errors
    ///
    /// `conflict`: the key has a different version or no value.
    pub fn delete_if(&self, key: &str, version: i64) -> Result<()> {
        let payload = [("key", key.into()), ("if_version", Value::Int(version))];
        self.ask("delete", payload).map(drop)
    }

    /// Returns a page of the keys, in byte order.
    pub fn list(&self, query: &Query) -> Result<Page> {
        let mut payload = vec![];
        for (name, text) in [("prefix", &query.prefix), ("after", &query.after)] {
            if !text.is_empty() {
                payload.push((name, Value::from(text.as_str())));
            }
        }
        if query.limit > 0 {
            payload.push(("limit", Value::Int(query.limit.into())));
        }
        if query.values {
            payload.push(("values", true.into()));
        }
        let answer = self.ask("list", payload)?;
        let items = answer.get("items").and_then(Value::as_list).unwrap_or(&[]);
        Ok(Page {
            items: items
                .iter()
                .map(|i| Item {
                    key: text(i, "key"),
                    version: number(i, "version"),
                    value: i.get("value").cloned(),
                })
                .collect(),
            next: text(&answer, "next"),
        })
    }

    fn ask(
        &self,
        method: &str,
        payload: impl IntoIterator<Item = (&'static str, Value)>,
    ) -> Result<Value, Error> {
        self.context.call(self.name, method, &Value::map(payload))
    }
}

/// Selects keys. The default selects the first hundred keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// The prefix of the keys.
    pub prefix: String,
    /// The page begins after this key: [`Page::next`] of the previous page.
    pub after: String,
    /// Keys in a page, at most 1000; 0: 100.
    pub limit: u32,
    /// Whether to return the values.
    pub values: bool,
}

impl Query {
    /// Selects the keys with a prefix.
    pub fn prefix(text: impl Into<String>) -> Self {
        Query {
            prefix: text.into(),
            ..Query::default()
        }
    }
}

/// A page of keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The keys, in order.
    pub items: Vec<Item>,
    /// [`Query::after`] for the next page; empty at the end.
    pub next: String,
}

/// A key, with its value if the query asked for values.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The key.
    pub key: String,
    /// The version of the value.
    pub version: i64,
    /// The value.
    pub value: Option<Value>,
}

fn number(map: &Value, name: &str) -> i64 {
    map.get(name).and_then(Value::as_i64).unwrap_or_default()
}

fn text(map: &Value, name: &str) -> String {
    map.get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::{Query, kv};
    use crate::prelude::*;
    use crate::testing::{Session, Values};

    #[derive(StartEvent)]
    struct StartEvent;

    #[step]
    fn keep(ctx: &Context, _: StartEvent) -> Result<Stop> {
        let shelf = ctx.kv("shelf");
        let mut between = true;
        let sum = shelf.update("a", |n: &mut i64| {
            if std::mem::take(&mut between) {
                shelf.increment("a", 10)?;
            }
            *n += 1;
            Ok(())
        })?;
        let version = shelf.set("b", "text")?;
        let refused = shelf.set_if("b", version - 1, "other").unwrap_err();
        shelf.delete_if("b", version)?;
        let page = shelf.list(&Query::default())?;
        let keys: Vec<String> = page.items.into_iter().map(|i| i.key).collect();
        let none: Option<i64> = shelf.get("b")?;
        Ok(Stop::new((sum, refused.code(), keys, none, page.next)))
    }

    workflow!("keeper", resources = [kv("shelf")], steps = [keep]);

    #[test]
    fn all_of_it() {
        let shelf = Values::default();
        shelf.set("c", &Value::Null).unwrap();
        let run = Session::new(&WORKFLOW)
            .kv("shelf", &shelf)
            .run(&())
            .unwrap();
        let got: (i64, String, Vec<String>, Option<i64>, String) = run.result().unwrap();
        let keys = vec!["a".to_owned(), "c".to_owned()];
        assert_eq!(
            got,
            (11, "conflict".into(), keys.clone(), None, String::new())
        );
        assert_eq!((shelf.keys(), shelf.get("a").unwrap()), (keys, Some(11)));
    }
}
