//! Code that pages of the documentation show: each block of Rust in a page is made of
//! lines of a file that is compiled, such as this one. See docs/README.md.

use weft::prelude::*;

/// Of docs/resources.md.
mod resources {
    use super::*;

    #[derive(StartEvent)]
    struct Order {
        customer: String,
    }

    #[step]
    fn look(ctx: &Context, ev: Order) -> Result<Stop> {
        let customer = ctx.http("crm").get(&format!("customers/{}", ev.customer))?;
        Ok(Stop::new(customer.text()?))
    }

    workflow!("sell", resources = [http("crm")], steps = [look]);

    #[test]
    fn looks() {
        let answer = |_: &str, r: HttpRequest| {
            let body = Bytes(r.path.into_bytes());
            Ok(HttpResponse {
                status: 200,
                body,
                ..HttpResponse::default()
            })
        };
        let session = weft::testing::Session::new(&WORKFLOW).resource("crm", answer);
        let customer = "7".into();
        let run = session.run(&Order { customer }).unwrap();
        assert_eq!(run.result::<String>().unwrap(), "customers/7");
    }
}

/// Of docs/resources.md, too.
#[expect(dead_code, reason = "it is compiled, and there is no model to ask")]
fn ask(ctx: &Context) -> Result<String> {
    let request = weft::llm::ChatRequest::new().user("Why is the sky blue?");
    let answer = ctx.llm("llm").chat(&request)?;
    Ok(answer.content)
}

/// A purchase of one currency for another, of docs/resources.md as well.
struct Purchase {
    pair: String,
    pounds: i64,
}

#[expect(dead_code, reason = "it is compiled; the scenes play such calls")]
fn keep(ctx: &Context, ev: &Purchase) -> Result<(i64, i64)> {
    let seen = ctx.kv("cache").increment(&format!("seen/{}", ev.pair), 1)?;
    let left = ctx.kv("cache").update("stock", |left: &mut i64| {
        *left -= ev.pounds;
        Ok(())
    })?;
    Ok((seen, left))
}
