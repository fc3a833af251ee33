use crate::boundary;

/// Describing is the warm-up: the first allocation grows memory.
#[unsafe(no_mangle)]
pub extern "C" fn weft_describe() {
    boundary::output(&Vec::from([0x82, 0, 0xf6]));
}

/// Hands back an input that is an output already: `[code, bytes]`. It makes one
/// host call if the last byte is an exclamation mark.
#[unsafe(no_mangle)]
pub extern "C" fn weft_step(len: u32) -> i32 {
    let input = boundary::input(len);
    if input.last() == Some(&b'!') {
        boundary::mark();
    }
    boundary::output(&input);
    input[1] as i32
}
