//! Paths and edits of the state.

use std::fmt::Display;

use crate::error::{Error, Result, code};
use crate::value::Value;

/// The error for a path without a value.
pub fn nothing(path: &str) -> Error {
    Error::new(
        code::NOT_FOUND,
        format_args!("there is nothing at \"{path}\""),
    )
}

/// Splits the first segment from a path: its key, and the rest after the dot. In a key a
/// dot is written as `\.`, and a backslash before a dot or a backslash as `\\`.
fn cut(path: &str) -> (String, Option<&str>) {
    let (mut key, mut chars) = (String::new(), path.char_indices());
    while let Some((i, c)) = chars.next() {
        match c {
            '.' => return (key, Some(&path[i + 1..])),
            '\\' if path[i + 1..].starts_with(['.', '\\']) => key.extend(chars.next().map(|n| n.1)),
            _ => key.push(c),
        }
    }
    (key, None)
}

/// The segments of a path; none for the whole state.
fn segments(path: &str) -> Vec<String> {
    let (mut all, mut rest) = (Vec::new(), Some(path).filter(|path| !path.is_empty()));
    while let Some(path) = rest {
        let (key, behind) = cut(path);
        all.push(key);
        rest = behind;
    }
    all
}

/// The value at a path.
pub fn lookup<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    segments(path)
        .iter()
        .try_fold(value, |value, segment| match value {
            Value::Map(map) => map.get(segment.as_str()),
            Value::List(list) => list.get(index(segment, list.len())?),
            _ => None,
        })
}

/// A list's index; negative ones count from the end.
fn index(segment: &str, len: usize) -> Option<usize> {
    let i: isize = segment.parse().ok()?;
    let i = if i < 0 { i + len as isize } else { i };
    usize::try_from(i).ok().filter(|i| *i < len)
}

/// Changes the value at a path, or creates it.
type Change<'a> = &'a mut dyn FnMut(Option<Value>) -> Result<Value>;

/// Replaces the value at a path by the result of `change`, which receives `None` if there
/// is no value. Missing maps on the way are created.
fn update(value: &mut Value, path: &str, change: Change) -> Result<()> {
    let (segment, behind) = cut(path);
    let (segment, last, rest) = (segment.as_str(), behind.is_none(), behind.unwrap_or(""));
    match value {
        Value::Map(map) if last => {
            let new = change(map.remove(segment))?;
            map.insert(segment.to_owned(), new);
            Ok(())
        }
        Value::Map(map) => {
            let empty = || Value::map::<&str>([]);
            let below = map.entry(segment.to_owned()).or_insert_with(empty);
            update(below, rest, change)
        }
        Value::List(list) => {
            if segment.parse::<isize>().is_err() {
                return Err(failed(format_args!(
                    "{segment:?} is not an index of a list"
                )));
            }
            let i = index(segment, list.len()).ok_or_else(|| nothing(path))?;
            if !last {
                return update(&mut list[i], rest, change);
            }
            list[i] = change(Some(list[i].clone()))?;
            Ok(())
        }
        _ => Err(failed(format_args!(
            "a value that has nothing at {segment:?}"
        ))),
    }
}

/// Deletes the value at a path, and returns whether there was one.
fn delete(state: &mut Value, path: &str) -> Result<Value> {
    if path.is_empty() {
        return Err(failed("the whole state cannot be deleted: clear it"));
    }
    if lookup(state, path).is_none() {
        return Ok(false.into()); // any reason why the path has no value
    }
    let mut place = segments(path);
    let name = place.pop().unwrap_or_default();
    match at(state, &place) {
        Some(Value::Map(map)) => drop(map.remove(name.as_str())),
        Some(Value::List(list)) => {
            if let Some(i) = index(&name, list.len()) {
                list.remove(i);
            }
        }
        _ => {}
    }
    Ok(true.into())
}

/// The value at a path, for changing it.
fn at<'a>(value: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    path.iter().try_fold(value, |value, segment| match value {
        Value::Map(map) => map.get_mut(segment.as_str()),
        Value::List(list) => {
            let i = index(segment, list.len())?;
            list.get_mut(i)
        }
        _ => None,
    })
}

fn failed(message: impl Display) -> Error {
    Error::new(code::FAILED_PRECONDITION, message)
}

/// Makes one edit and returns its result.
pub fn edit(
    state: &mut Value,
    initial: &Value,
    op: &str,
    path: &str,
    value: Value,
) -> Result<Value> {
    match op {
        "clear" => *state = initial.clone(),
        "delete" => return delete(state, path),
        "test" => {
            if lookup(state, path) != Some(&value) {
                return Err(Error::new(
                    code::CONFLICT,
                    format_args!("the test of \"{path}\" failed"),
                ));
            }
        }
        "merge" if value.as_map().is_none() => {
            return Err(Error::misuse("only a map can be merged"));
        }
        "increment" if value.as_f64().is_none() => return Err(failed("increment by no number")),
        _ => return change(state, op, path, value),
    }
    Ok(Value::Null)
}

/// Makes an edit that replaces one value by another.
fn change(state: &mut Value, op: &str, path: &str, value: Value) -> Result<Value> {
    let mut result = Value::Null;
    let mut make = |old: Option<Value>| {
        Ok(match op {
            "set" => value.clone(),
            "append" => {
                let mut list = match old {
                    None => Vec::new(),
                    Some(Value::List(list)) => list,
                    Some(_) => return Err(failed("append to what is not a list")),
                };
                list.push(value.clone());
                result = list.len().into();
                list.into()
            }
            "increment" => {
                result = sum(&old.unwrap_or(Value::Int(0)), &value)?;
                result.clone()
            }
            "merge" => merge(old, value.clone()),
            _ => return Err(Error::misuse(format_args!("there is no edit {op}"))),
        })
    };
    if !path.is_empty() {
        update(state, path, &mut make)?;
    } else {
        let whole = make(Some(state.clone()))?;
        if whole.as_map().is_none() {
            return Err(failed("the whole state must be a map"));
        }
        *state = whole;
    }
    Ok(result)
}

/// The sum of two numbers; an integer if both are.
fn sum(a: &Value, b: &Value) -> Result<Value> {
    if let (Some(a), Some(b)) = (integer(a), integer(b)) {
        let sum = a + b;
        let small = i64::try_from(sum).map(Value::Int);
        let large = || u64::try_from(sum).map(Value::BigInt);
        return small
            .or_else(|_| large())
            .map_err(|_| failed("the sum is beyond the range of integers"));
    }
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) if (a + b).is_finite() => Ok(Value::Float(a + b)),
        (Some(_), Some(_)) => Err(failed("the sum is beyond the range of numbers")),
        _ => Err(failed("increment of what is not a number")),
    }
}

fn integer(value: &Value) -> Option<i128> {
    match value {
        Value::Int(n) => Some((*n).into()),
        Value::BigInt(n) => Some((*n).into()),
        _ => None,
    }
}

fn merge(old: Option<Value>, new: Value) -> Value {
    match (old, new) {
        (Some(Value::Map(mut map)), Value::Map(entries)) => {
            for (key, value) in entries {
                let merged = merge(map.remove(&key), value);
                map.insert(key, merged);
            }
            Value::Map(map)
        }
        (_, new) => new,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors have the results of edits on a server: `testdata/edits.cbor` of the
    /// project, which its tests write.
    #[test]
    fn edits_do_what_a_server_does() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../testdata/edits.cbor");
        let bytes = std::fs::read(file).expect("the vectors");
        let vectors: Vec<Value> = crate::cbor::from_slice(&bytes).expect("a list");
        assert!(vectors.len() > 500);
        let mut faults = Vec::new();
        for vector in &vectors {
            let [state, op, path, value, result, code, after] = vector.as_list().unwrap() else {
                panic!("{vector:?}");
            };
            let (op, path) = (op.as_str().unwrap(), path.as_str().unwrap());
            let mut changed = state.clone();
            let outcome = edit(&mut changed, &Value::Null, op, path, value.clone());
            let same = match &outcome {
                Ok(have) => *code == Value::Null && have == result && changed == *after,
                Err(e) => code.as_str() == Some(e.code()),
            };
            if !same {
                faults.push(format!("{op} {path:?} {value:?} of {state:?}: {outcome:?} and {changed:?}, want {result:?} {code:?} and {after:?}"));
            }
        }
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}
