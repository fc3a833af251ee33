//! Values that all runs share.

use weft::kv::Query;
use weft::prelude::*;

use crate::call::Steps;

/// What is kept.
#[derive(Data, Default)]
struct Note {
    n: i64,
    text: String,
}

/// Does all that there is to do with a resource of the kind kv.
pub fn keep(ctx: &Steps) -> Result<Stop> {
    let shelf = ctx.kv("shelf");
    let mut seen: Vec<Value> = vec![];
    fn of(v: Result<impl Into<Value>>) -> Value {
        v.map_or_else(|e| e.code().into(), Into::into)
    }
    let refused = |v: Result<i64>| of(v.map(|_| "not refused"));
    let note = |n, text: &str| Note {
        n,
        text: text.to_owned(),
    };

    let entry = shelf.entry::<Note>("a/note");
    seen.push(of(entry.map(|e| e.map_or(0, |(_, version)| version))));
    let first = shelf.set("a/note", &note(1, "saï"))?;
    seen.push((first > 0).into());
    let second = shelf.set_if("a/note", first, &note(2, "again"))?;
    seen.push((second > first).into());
    seen.push(refused(shelf.set_if("a/note", first, &note(0, ""))));
    seen.push(refused(shelf.set_if("a/note", 0, &note(0, ""))));
    let (kept, version) = shelf.entry::<Note>("a/note")?.unwrap_or_default();
    seen.push(Value::list([
        Value::from(version == second),
        kept.n.into(),
        kept.text.as_str().into(),
    ]));
    seen.push(of(shelf.increment("a/n", 5)));
    seen.push(of(shelf.increment("a/n", -2)));
    seen.push(of(shelf.increment("a/note", 1)));
    seen.push(of(shelf.update("a/n", |n: &mut i64| {
        *n += 10;
        Ok(())
    })));
    seen.push(refused(shelf.set(&format!("a/{}", "k".repeat(511)), &1)));
    seen.push(refused(shelf.set("", &1)));
    let one = Query {
        limit: 1,
        values: true,
        ..Query::prefix("a/")
    };
    let page = shelf.list(&one)?;
    for item in &page.items {
        seen.push(Value::list([
            Value::from(item.key.as_str()),
            item.value.clone().unwrap_or(Value::Null),
            page.next.as_str().into(),
        ]));
    }
    let rest = Query {
        after: page.next,
        ..Query::prefix("a/")
    };
    let page = shelf.list(&rest)?;
    for item in &page.items {
        seen.push(Value::list([
            Value::from(item.key.as_str()),
            (item.version == second).into(),
            page.next.as_str().into(),
        ]));
    }
    seen.push(refused(shelf.delete_if("a/note", first).map(|()| 0)));
    let gone = shelf.delete_if("a/note", second);
    seen.push(of(gone.map(|()| Value::Null)));
    seen.push(of(shelf.delete("a/n")));
    seen.push(of(shelf.delete("a/n")));
    Ok(Stop::new(Value::list(seen)))
}

/// Counts twice under keys that all runs share.
pub fn tally(ctx: &Steps, name: &str) -> Result<Stop> {
    let shelf = ctx.kv("shelf");
    let own = shelf.update(&format!("own/{name}"), |n: &mut i64| {
        *n += 1;
        Ok(())
    })?;
    let sum = shelf.increment("sum", 1)?;
    shelf.update("all", |sums: &mut Vec<i64>| {
        sums.push(sum);
        Ok(())
    })?;
    Ok(Stop::new((own, sum)))
}
