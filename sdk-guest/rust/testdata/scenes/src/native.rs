//! Plays the scenes natively: testdata/scenes.json of the project says what comes of
//! each on a server, and `weft::testing` has to give the same.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;
use std::time::Duration;

use weft::prelude::*;
use weft::testing::{Run, Session};

use crate::WORKFLOW;

#[test]
fn scenes_come_out_as_on_a_server() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../../testdata/scenes.json"
    );
    let text = std::fs::read_to_string(file).expect("the scenes");
    let acts = Json(text.chars().peekable()).value();
    let acts = acts.as_list().expect("a list");
    assert!(acts.len() > 40, "{} scenes", acts.len());
    let faults: Vec<String> = acts
        .iter()
        .filter(|act| act.get("outside").is_none())
        .flat_map(play)
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Plays one scene; says what is not as on a server.
fn play(act: &Value) -> Vec<String> {
    let name = text(act, "name");
    let session = Session::new(&WORKFLOW);
    let world = WorkflowRun::begin(&session, act);
    let mut faults = Vec::new();
    let failure = world.failure.as_ref().map(ToString::to_string);
    match (act.get("error").and_then(Value::as_str), &world.failure) {
        (Some(want), Some(e)) => {
            let code = act.get("code").and_then(Value::as_str);
            if !e.message().contains(want) || code.is_some_and(|code| code != e.code()) {
                faults.push(format!("{name}: fails with {e}, want {want}"));
            }
        }
        (Some(want), None) => faults.push(format!("{name}: does not fail with {want}")),
        (None, _) => {
            let result = world.run.as_ref().filter(|r| r.has_ended());
            let result = result.map(|r| r.result::<Value>().expect("a value"));
            if result.as_ref() != act.get("result") {
                let want = act.get("result");
                faults.push(format!(
                    "{name}: gives {result:?} ({failure:?}), want {want:?}"
                ));
            }
        }
    }
    let streamed = world.run.map(|r| r.streamed()).unwrap_or_default();
    let own = |kind: &str| kind != "StopEvent" && !kind.starts_with("Workflow");
    let wanted = act.get("stream").and_then(Value::as_list);
    let wanted = wanted
        .unwrap_or_default()
        .iter()
        .filter(|e| own(text(e, "type")));
    for (i, want) in wanted.enumerate() {
        let have = streamed.get(i);
        let same = |value: &Value| have.is_some_and(|e| e.body == *value);
        if have.is_none_or(|e| e.name != text(want, "type")) || !want.get("value").is_none_or(same)
        {
            faults.push(format!("{name}: streams {have:?}, want {want:?}"));
        }
    }
    faults
}

/// A run, unless it could not begin; and for what it failed.
struct WorkflowRun {
    run: Option<Run>,
    failure: Option<Error>,
}

impl WorkflowRun {
    fn begin(session: &Session, act: &Value) -> Self {
        let run = match session.start(act.get("start").expect("a start")) {
            Ok(run) => run,
            Err(failure) => {
                return WorkflowRun {
                    run: None,
                    failure: Some(failure),
                };
            }
        };
        let cues = act.get("post").and_then(Value::as_list);
        for cue in cues.unwrap_or_default() {
            let waits = cue.get("waiter").or(cue.get("type"));
            if let Some(name) = waits.and_then(Value::as_str) {
                let waiting = run.waiting();
                let there = waiting.iter().any(|w| w.starts_with(name));
                assert!(there, "{}: it waits for {waiting:?}", text(act, "name"));
            }
            let _ = match cue.get("event") {
                Some(event) => run.post(text(event, "type"), event.get("value").expect("one")),
                None => run.cancel(),
            };
        }
        if !run.has_ended() && run.error().is_none() {
            let _ = run.advance(Duration::from_secs(60)); // what waits, and is not answered
        }
        WorkflowRun {
            failure: run.error(),
            run: Some(run),
        }
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    let text = value.get(key).and_then(Value::as_str);
    text.expect("a text")
}

/// As much of JSON as the file has.
struct Json<'a>(Peekable<Chars<'a>>);

impl Json<'_> {
    fn peek(&mut self) -> char {
        while self.0.next_if(|c| c.is_ascii_whitespace()).is_some() {}
        *self.0.peek().expect("more text")
    }

    fn take(&mut self, c: char) -> bool {
        self.peek() == c && self.0.next().is_some()
    }

    fn value(&mut self) -> Value {
        match self.peek() {
            '{' => {
                self.take('{');
                let mut map = BTreeMap::new();
                while !self.take('}') {
                    self.take(',');
                    let key = self.text();
                    assert!(self.take(':'), "a colon");
                    map.insert(key, self.value());
                }
                Value::Map(map)
            }
            '[' => {
                self.take('[');
                let mut list = Vec::new();
                while !self.take(']') {
                    self.take(',');
                    if self.peek() != ']' {
                        list.push(self.value());
                    }
                }
                Value::List(list)
            }
            '"' => self.text().into(),
            _ => self.word(),
        }
    }

    fn text(&mut self) -> String {
        assert!(self.take('"'), "a text");
        let mut text = String::new();
        loop {
            match self.0.next().expect("the end of a text") {
                '"' => return text,
                '\\' => text.push(self.0.next().expect("an escaped character")),
                c => text.push(c),
            }
        }
    }

    fn word(&mut self) -> Value {
        let mut word = String::new();
        while let Some(c) = self.0.next_if(|c| !",]} \n".contains(*c)) {
            word.push(c);
        }
        match word.as_str() {
            "null" => Value::Null,
            "true" | "false" => (word == "true").into(),
            _ => match word.parse::<i64>() {
                Ok(n) => n.into(),
                Err(_) => word.parse::<f64>().expect("a number").into(),
            },
        }
    }
}
