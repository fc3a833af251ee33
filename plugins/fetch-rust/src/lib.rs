//! Fetch makes an HTTP request by a resource that the operator grants.

use weft::prelude::*;

/// Says what to fetch.
#[derive(StartEvent)]
struct StartEvent {
    /// below the base_url of the resource
    path: String,
    #[weft(default = "GET")]
    method: String,
    #[weft(default)]
    body: String,
}

/// The result.
#[derive(Data, Debug, PartialEq)]
struct Page {
    status: u16,
    /// letters of the text
    length: usize,
    /// pages that the session has asked for
    asked: i64,
}

/// The session's state.
#[derive(State, Default)]
struct Tally {
    asked: i64,
}

#[step]
fn fetch(ctx: &Context<Tally>, ev: StartEvent) -> Result<Stop> {
    let asked = ctx.increment("asked", 1)?; // once, however often the request is repeated
    let answer = ctx.http("web").send(&HttpRequest {
        method: ev.method,
        path: ev.path,
        body: ev.body.into(),
        ..HttpRequest::default()
    })?;
    Ok(Stop::new(Page {
        status: answer.status,
        length: letters(&answer.body),
        asked,
    }))
}

/// How many letters a text has; an invalid byte counts as one.
fn letters(text: &Bytes) -> usize {
    let parts = text.0.utf8_chunks();
    parts
        .map(|p| p.valid().chars().count() + p.invalid().len())
        .sum()
}

workflow!(
    "fetch-rust",
    state = Tally,
    resources = [http("web").description("where pages are fetched from")],
    steps = [fetch],
);

#[cfg(test)]
mod tests {
    use super::*;
    use weft::code;
    use weft::testing::Session;

    /// Replaces the resource.
    fn web(method: &str, r: HttpRequest) -> Result<HttpResponse> {
        if method != "request" || r.path == "gone" {
            return Err(Error::new(code::UNAVAILABLE, "nobody is there"));
        }
        let mut body = format!("{} é ", r.method).into_bytes();
        body.extend(r.body);
        Ok(HttpResponse {
            status: 201,
            body: Bytes(body),
            ..HttpResponse::default()
        })
    }

    fn start(path: &str) -> StartEvent {
        let (method, body) = ("POST".into(), "tea".into());
        let path = path.into();
        StartEvent { path, method, body }
    }

    #[test]
    fn a_page_is_counted() {
        let session = Session::new(&WORKFLOW).resource("web", web);
        let run = session.run(&start("pages/1")).unwrap();
        let (status, length, asked) = (201, "POST e tea".len(), 1);
        let page = Page {
            status,
            length,
            asked,
        };
        assert_eq!(run.result::<Page>().unwrap(), page);
    }

    #[test]
    fn failures() {
        let session = Session::new(&WORKFLOW).resource("web", web);
        let error = session.run(&start("gone")).err().unwrap();
        assert_eq!(
            error.to_string(),
            "unavailable: call \"web\": nobody is there"
        );
        let without = Session::new(&WORKFLOW).run(&start("a")).err().unwrap();
        assert_eq!(without.code(), code::PERMISSION_DENIED);
    }

    #[test]
    fn letters_of_what_is_no_text() {
        assert_eq!(letters(&Bytes(b"a\xc3\xa4\xff\xe4\xb8".to_vec())), 5);
    }
}
