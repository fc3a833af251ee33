//! Values by key that all runs of a tenant share, beyond their sessions: resources
//! of the kind `kv`.
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

/// How often [`Kv::update`] tries, so that a step ends whatever others do.
const MOST_UPDATES: u32 = 100;

/// A resource of the kind `kv`, for `workflow!(..., resources = [...])`.
pub const fn kv(name: &'static str) -> Resource {
    resource(name, "kv")
}

impl<S> Context<S> {
    /// The granted resource of that name and of the kind `kv`.
    pub fn kv<'a>(&'a self, name: &'a str) -> Kv<'a, S> {
        Kv {
            context: self,
            name,
        }
    }
}

/// A granted resource of the kind `kv`.
///
/// What is written is there once, together with the step's own progress: a call
/// that was answered is not made again, after a crash or by the next attempt of the
/// step, and needs no key. A fork, or an attempt that fails, takes nothing back.
///
/// The codes of errors: `conflict`, `limit_exceeded`, `failed_precondition` (an
/// increment of what is not a whole number), `permission_denied`.
pub struct Kv<'a, S> {
    context: &'a Context<S>,
    name: &'a str,
}

impl<S> Kv<'_, S> {
    /// Reads what is under a key; `None`: there is nothing.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>> {
        Ok(self.entry(key)?.map(|(value, _)| value))
    }

    /// Reads what is under a key, with its version: no other value of the resource
    /// has or had it.
    pub fn entry<T: DeserializeOwned>(&self, key: &str) -> Result<Option<(T, i64)>> {
        let answer = self.ask("get", [("key", key.into())])?;
        match answer.get("value") {
            None => Ok(None),
            Some(value) => Ok(Some((value.read()?, number(&answer, "version")))),
        }
    }

    /// Puts a value under a key, and gives its version.
    pub fn set<T: Serialize + ?Sized>(&self, key: &str, value: &T) -> Result<i64> {
        let payload = [("key", key.into()), ("value", Value::of(value)?)];
        Ok(number(&self.ask("set", payload)?, "version"))
    }

    /// Puts a value under a key that has this version still; 0: that is not there.
    ///
    /// # Errors
    ///
    /// `conflict`: it has another. Read again and decide anew, as [`Kv::update`]
    /// does; a step that fails of it reads anew when it is tried again.
    pub fn set_if<T: Serialize + ?Sized>(&self, key: &str, version: i64, value: &T) -> Result<i64> {
        let payload = [
            ("key", key.into()),
            ("value", Value::of(value)?),
            ("if_version", Value::Int(version)),
        ];
        Ok(number(&self.ask("set", payload)?, "version"))
    }

    /// Changes the value under a key as if alone, and gives what it is then: the
    /// function gets what is there, or the default, and is called again if somebody
    /// else was first. An error of it changes nothing.
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

    /// Adds to the whole number under a key, of which none counts as 0, and gives
    /// the sum.
    pub fn increment(&self, key: &str, by: i64) -> Result<i64> {
        let payload = [("key", key.into()), ("by", Value::Int(by))];
        Ok(number(&self.ask("increment", payload)?, "value"))
    }

    /// Takes a key out, and says whether it was there.
    pub fn delete(&self, key: &str) -> Result<bool> {
        let answer = self.ask("delete", [("key", key.into())])?;
        Ok(answer.get("deleted").and_then(Value::as_bool) == Some(true))
    }

    /// Takes a key out that has this version still.
    ///
    /// # Errors
    ///
    /// `conflict`: it has another, or is not there.
    pub fn delete_if(&self, key: &str, version: i64) -> Result<()> {
        let payload = [("key", key.into()), ("if_version", Value::Int(version))];
        self.ask("delete", payload).map(drop)
    }

    /// Gives a page of the keys, in the order of their bytes.
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

/// Selects keys; the default is the first hundred of all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// How they begin.
    pub prefix: String,
    /// The key behind which to go on: [`Page::next`] of the page before.
    pub after: String,
    /// Of a page, at most 1000; 0: 100.
    pub limit: u32,
    /// With the values.
    pub values: bool,
}

impl Query {
    /// The keys that begin so.
    pub fn prefix(text: impl Into<String>) -> Self {
        Query {
            prefix: text.into(),
            ..Query::default()
        }
    }
}

/// Some keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The keys, in order.
    pub items: Vec<Item>,
    /// Where to go on; empty at the end.
    pub next: String,
}

/// A key, with its value if that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The key.
    pub key: String,
    /// Of the value.
    pub version: i64,
    /// What is under the key.
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
