//! A plugin as Extism's authors write them, with their PDK for Rust: it knows
//! nothing of weft.

use extism_pdk::*;

#[plugin_fn]
pub fn count_vowels(input: String) -> FnResult<String> {
    let count = input.chars().filter(|c| "aeiouAEIOU".contains(*c)).count();
    Ok(format!("{{\"count\":{count}}}"))
}

#[plugin_fn]
pub fn echo(input: Vec<u8>) -> FnResult<Vec<u8>> {
    Ok(input)
}

/// Sets an error, and returns what its input says.
#[plugin_fn]
pub fn fail(input: String) -> FnResult<String> {
    let (code, text) = input.split_once(' ').unwrap_or((&input, ""));
    var::set("left", "behind")?;
    match code.parse()? {
        0 => Ok(text.to_string()),
        code => Err(WithReturnCode::new(Error::msg(text.to_string()), code)),
    }
}

#[plugin_fn]
pub fn trap(input: String) -> FnResult<()> {
    panic!("out of {input}")
}

#[plugin_fn]
pub fn config(input: String) -> FnResult<String> {
    let value = config::get(&input)?;
    Ok(format!("{} {}", value.clone().unwrap_or_default(), value.is_some()))
}

/// Does what its input says, line by line, and gives what it got.
#[plugin_fn]
pub fn vars(input: String) -> FnResult<String> {
    let mut got = Vec::new();
    for line in input.lines() {
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        match words[..] {
            ["set", name, value] => var::set(name, value)?,
            ["get", name] => got.push(format!("{:?}", var::get::<String>(name)?)),
            ["remove", name] => var::remove(name)?,
            ["count", name] => {
                let n = var::get::<String>(name)?.unwrap_or_default().parse().unwrap_or(0) + 1;
                var::set(name, n.to_string())?;
                got.push(n.to_string());
            }
            _ => {}
        }
    }
    Ok(got.join(" "))
}

/// Makes the request that its input says.
#[plugin_fn]
pub fn fetch(Json(request): Json<HttpRequest>) -> FnResult<String> {
    let body = request.headers.get("X-Body").cloned();
    let response = http::request(&request, body)?;
    let text = String::from_utf8_lossy(&response.body()).into_owned();
    let answer = response.headers().get("x-answer").cloned().unwrap_or_default();
    Ok(format!("{} {answer} {text}", response.status_code()))
}

#[plugin_fn]
pub fn log_lines(input: String) -> FnResult<()> {
    debug!("a debug line");
    info!("{input}");
    error!("an error line");
    Ok(())
}

/// Never ends.
#[plugin_fn]
pub fn spin(_: ()) -> FnResult<()> {
    loop {
        std::hint::black_box(0);
    }
}

/// Allocates and never frees.
#[plugin_fn]
pub fn hoard(_: ()) -> FnResult<()> {
    loop {
        Memory::new(&vec![0u8; 1 << 20])?;
    }
}
