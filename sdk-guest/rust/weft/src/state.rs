//! The session's state: reads, edits and batches.
//!
//! Paths are dotted: `"a.b.0"` is the first item of the list `b` in the map `a`, `"-1"`
//! the last item of a list, `""` the whole state. Write a dot in a key as `\.`, and a
//! backslash before a dot or a backslash as `\\`.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::boundary;
use crate::cbor::{self, Decoder, Encoder};
use crate::context::{Context, check, empty, path_request};
use crate::data::Data;
use crate::error::{Error, Result, code};
use crate::value::Value;

/// The type of a session's state. Use `#[derive(State, Default)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of a state",
    note = "put #[derive(State, Default)] on it"
)]
pub trait State: Data + Default + 'static {
    /// The name of the type in its schema.
    const NAME: &'static str;
}

/// The state of a workflow that declares none: any path may hold any value. Use it as the
/// type of a [`Context`] if a step does not depend on the state's type.
pub type Untyped = BTreeMap<String, Value>;

/// A state type that a context may have in a workflow.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the context of this step has the state `{Self}`, but the workflow has `{W}`",
    note = "name the type in workflow!(..., state = TheState, ...), and give all steps a `&Context<TheState>` or a plain `&Context`"
)]
pub trait Fits<W> {}

impl<W> Fits<W> for Untyped {}

#[doc(hidden)]
pub const fn fits<S: Fits<W>, W>() {}

/// Reads and edits that need no type of the whole state: one host call each.
impl<S> Context<S> {
    /// Reads the value at a path. A path without a value is an error; see
    /// [`Context::get_or`].
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        get(path, path_request::<()>(path, None))
            .and_then(|value| read(&value).map_err(|e| e.context(Call("get", path))))
    }

    /// Reads the value at a path, or returns `other` if there is no value.
    pub fn get_or<T: Serialize + DeserializeOwned>(&self, path: &str, other: T) -> Result<T> {
        get(path, path_request(path, Some(&other)))
            .and_then(|value| read(&value).map_err(|e| e.context(Call("get", path))))
    }

    /// Sets the value at a path, and creates missing maps on the path.
    pub fn set<T: Serialize + ?Sized>(&self, path: &str, value: &T) -> Result<()> {
        self.batch().set(path, value).one().map(drop)
    }

    /// Removes the value at a path and returns whether there was one.
    pub fn delete(&self, path: &str) -> Result<bool> {
        self.batch().delete(path).one()?.read()
    }

    /// Adds a value to the list at a path and returns the list's new length. A missing
    /// list is created.
    pub fn append<T: Serialize + ?Sized>(&self, path: &str, value: &T) -> Result<usize> {
        self.batch().append(path, value).one()?.read()
    }

    /// Adds to the integer at a path and returns the new value. A missing value counts as
    /// 0.
    pub fn increment(&self, path: &str, by: i64) -> Result<i64> {
        self.batch().increment(path, by).one()?.read()
    }

    /// Adds to the number at a path and returns the new value. A missing value counts as
    /// 0.
    pub fn increment_float(&self, path: &str, by: f64) -> Result<f64> {
        self.batch()
            .edit("increment", path, Some(&by))
            .one()?
            .read()
    }

    /// Merges the entries of a map or struct into the map at a path, recursively.
    pub fn merge<T: Serialize + ?Sized>(&self, path: &str, entries: &T) -> Result<()> {
        self.batch().merge(path, entries).one().map(drop)
    }

    /// Fails with the code `conflict` unless the value at a path equals `value`. It is
    /// most useful in a [`Context::batch`], which then fails as a whole.
    pub fn test<T: Serialize + ?Sized>(&self, path: &str, value: &T) -> Result<()> {
        self.batch().test(path, value).one().map(drop)
    }

    /// Resets the whole state to its defaults.
    pub fn clear(&self) -> Result<()> {
        self.batch().clear().commit().map(drop)
    }

    /// Starts a list of edits that take effect together or not at all.
    ///
    /// ```
    /// # use weft::prelude::*;
    /// # fn step(ctx: &Context) -> Result<()> {
    /// ctx.batch()
    ///     .test("open", &false)
    ///     .set("open", &true)
    ///     .increment("visits", 1)
    ///     .commit()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn batch(&self) -> Batch {
        Batch {
            edits: Encoder::new(),
            n: 0,
            fault: None,
            first: String::new(),
        }
    }

    /// Edits the value at a path, as [`Context::edit`] edits the whole state. It costs
    /// less, and conflicts with fewer other edits.
    ///
    /// ```
    /// # use weft::prelude::*;
    /// # fn step(ctx: &Context) -> Result<()> {
    /// ctx.edit_at("cart.items", |items: &mut Vec<String>| items.push("tea".into()))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn edit_at<T: Serialize + DeserializeOwned, R>(
        &self,
        path: &str,
        change: impl FnOnce(&mut T) -> R,
    ) -> Result<R> {
        self.try_edit_at(path, |value| Ok(change(value)))
    }

    /// Like [`Context::edit_at`], for a change that may fail. If it fails, nothing is
    /// written and the error is returned.
    pub fn try_edit_at<T: Serialize + DeserializeOwned, R>(
        &self,
        path: &str,
        change: impl FnOnce(&mut T) -> Result<R>,
    ) -> Result<R> {
        let what = Call("edit", path);
        let before = begin(path)?;
        let opened = Decoder::new(&before).open_value();
        let (mut value, rest) = opened.map_err(|e| abort(Error::misuse(e).context(&what)))?;
        let result = change(&mut value).map_err(abort)?;
        cbor::to_vec(&value)
            .and_then(|encoded| rest.merge_into(encoded))
            .map_err(|e| abort(Error::misuse(e).context(&what)))
            .and_then(|after| commit(&after, &what))?;
        Ok(result)
    }
}

/// Reads and edits of the whole state.
impl<S: Serialize + DeserializeOwned> Context<S> {
    /// Reads the whole state. Inside an edit, too, it returns the last committed state.
    pub fn state(&self) -> Result<S> {
        self.get("")
    }

    /// Reads the whole state, lets `change` modify it, and writes it back, without
    /// interference from others. If another edit changes the state meanwhile, the edit is
    /// repeated on the new state, so that no edit is lost. Keys that `S` does not declare
    /// are kept. Returns the result of `change`.
    ///
    /// `change` may only read, log, and call [`Context::now`] and [`Context::random`].
    ///
    /// ```
    /// # use weft::prelude::*;
    /// #[derive(State, Default)]
    /// struct Tally {
    ///     runs: u64,
    /// }
    ///
    /// # fn step(ctx: &Context<Tally>) -> Result<()> {
    /// let runs = ctx.edit(|t| {
    ///     t.runs += 1;
    ///     t.runs
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn edit<R>(&self, change: impl FnOnce(&mut S) -> R) -> Result<R> {
        self.edit_at("", change)
    }

    /// Like [`Context::edit`], for a change that may fail. If it fails, nothing is
    /// written and the error is returned.
    pub fn try_edit<R>(&self, change: impl FnOnce(&mut S) -> Result<R>) -> Result<R> {
        self.try_edit_at("", change)
    }
}

/// A call, for messages.
struct Call<'a>(&'a str, &'a str);

impl fmt::Display for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} \"{}\"", self.0, self.1)
    }
}

fn get(path: &str, request: Result<Vec<u8>, cbor::Error>) -> Result<Vec<u8>> {
    let what = Call("get", path);
    let request = request.map_err(|e| Error::misuse(e).context(&what))?;
    check(boundary::state_get(&request), &what).map_err(|e| {
        if e.code() == code::NOT_FOUND {
            e.advise("get_or(path, other) gives another value then")
        } else {
            e
        }
    })
}

fn read<T: DeserializeOwned>(value: &[u8]) -> Result<T> {
    cbor::from_slice(value).map_err(Error::misuse)
}

/// Opens an edit and returns the value to change.
fn begin(path: &str) -> Result<Vec<u8>> {
    let mut request = Encoder::new();
    request.array(1);
    request.text(path);
    let answer = boundary::state_begin(&request.into_bytes());
    check(answer, Call("edit", path)).map_err(|e| {
        if e.code() == code::NOT_FOUND {
            e.advise("set the path before it is edited, or give the state a default for it")
        } else {
            e
        }
    })
}

fn commit(value: &[u8], what: &Call) -> Result<()> {
    let mut request = Encoder::new();
    request.array(1);
    request.raw(value);
    check(boundary::state_commit(&request.into_bytes()), what).map(drop)
}

/// Ends the open edit, which fails only if there is none. Returns the given error.
fn abort(error: Error) -> Error {
    boundary::state_abort(&empty());
    error
}

/// A list of edits to commit. A value that cannot be encoded fails [`Batch::commit`].
#[must_use = "a batch does nothing until it is committed"]
pub struct Batch {
    edits: Encoder,
    n: usize,
    fault: Option<cbor::Error>,
    /// The first edit, for messages.
    first: String,
}

impl Batch {
    fn edit<T: Serialize + ?Sized>(mut self, op: &str, path: &str, value: Option<&T>) -> Self {
        if self.n == 0 {
            self.first = Call(op, path).to_string();
        }
        self.n += 1;
        self.edits.array(2 + usize::from(value.is_some()));
        self.edits.text(op);
        self.edits.text(path);
        if let Some(value) = value
            && let Err(fault) = self.edits.value(value)
        {
            self.fault.get_or_insert(fault.within(path, None));
        }
        self
    }

    /// Sets the value at a path, and creates missing maps on the path.
    pub fn set<T: Serialize + ?Sized>(self, path: &str, value: &T) -> Self {
        self.edit("set", path, Some(value))
    }

    /// Removes the value at a path; its result says whether there was one.
    pub fn delete(self, path: &str) -> Self {
        self.edit::<()>("delete", path, None)
    }

    /// Adds a value to the list at a path; its result is the new length.
    pub fn append<T: Serialize + ?Sized>(self, path: &str, value: &T) -> Self {
        self.edit("append", path, Some(value))
    }

    /// Adds to the integer at a path; its result is the new value.
    pub fn increment(self, path: &str, by: i64) -> Self {
        self.edit("increment", path, Some(&by))
    }

    /// Adds to the number at a path; its result is the new value.
    pub fn increment_float(self, path: &str, by: f64) -> Self {
        self.edit("increment", path, Some(&by))
    }

    /// Merges the entries of a map or struct into the map at a path, recursively.
    pub fn merge<T: Serialize + ?Sized>(self, path: &str, entries: &T) -> Self {
        self.edit("merge", path, Some(entries))
    }

    /// Fails the whole batch, with the code `conflict`, unless the value at the path
    /// equals `value`.
    pub fn test<T: Serialize + ?Sized>(self, path: &str, value: &T) -> Self {
        self.edit("test", path, Some(value))
    }

    /// Resets the whole state to its defaults.
    pub fn clear(mut self) -> Self {
        self.n += 1;
        self.edits.array(1);
        self.edits.text("clear");
        self
    }

    /// Makes the edits and returns a result for each.
    pub fn commit(self) -> Result<Vec<Value>> {
        if self.n == 0 {
            return Ok(Vec::new());
        }
        self.commit_as("batch")
    }

    fn commit_as(self, what: &str) -> Result<Vec<Value>> {
        if let Some(fault) = self.fault {
            return Err(Error::misuse(fault).context(what));
        }
        let mut request = Encoder::new();
        request.array(self.n);
        request.raw(&self.edits.into_bytes());
        let response = check(boundary::state_edit(&request.into_bytes()), what)?;
        read(&response).map_err(|e| e.context(what))
    }

    /// Makes the only edit and returns its result.
    fn one(mut self) -> Result<Value> {
        let what = std::mem::take(&mut self.first);
        let result = self.commit_as(&what)?.pop();
        result.ok_or_else(|| Error::misuse("the host gave no result").context(what))
    }
}
