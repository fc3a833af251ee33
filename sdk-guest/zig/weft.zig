//! The parts of the ABI (abi/abi.cddl) that a step in Zig needs: one file, no library.
//!
//! Messages are CBOR. `write` makes a message from any Zig value (tuples are lists, structs are maps, slices of u8 are
//! text), at compile time if the value is known then. `Value.get` finds a value in a message. No memory is freed: every
//! invocation starts from the same memory. Messages that do not fit into `arena`, and invalid messages, cause a trap, which
//! fails only the step.
const std = @import("std");

const host = struct {
    extern "weft:v1" fn input(to: [*]u8, offset: u32, size: u32) void;
    extern "weft:v1" fn response(to: [*]u8, offset: u32, size: u32) void;
    extern "weft:v1" fn output(from: [*]const u8, size: u32) void;
};

var arena: [1 << 20]u8 = undefined;
var used: u32 = 0;

fn take(size: u64) []u8 {
    if (size > arena.len - used) @trap();
    defer used += @intCast(size);
    return arena[used..][0..@intCast(size)];
}

/// One CBOR item; empty if the value is missing. An empty item is written as null.
pub const Value = struct {
    cbor: []const u8,

    const none: Value = .{ .cbor = "" };

    /// The value at a path of field names and list indices, separated by dots.
    pub fn get(value: Value, path: []const u8) Value {
        var v = value;
        var rest = path;
        while (rest.len > 0) {
            var end: usize = 0;
            while (end < rest.len and rest[end] != '.') end += 1;
            v = v.child(rest[0..end]) orelse return none;
            rest = rest[@min(end + 1, rest.len)..];
        }
        return v;
    }

    /// The text, or null if the item is not a text.
    pub fn text(value: Value) ?[]const u8 {
        if (value.cbor.len == 0) return null;
        var r = Reader{ .left = value.cbor };
        const head = r.open();
        return if (head.major == 3) r.skip(head.number) else null;
    }

    /// The integer, or null if the item is not an integer of 64 bits.
    pub fn int(value: Value) ?i64 {
        if (value.cbor.len == 0) return null;
        var r = Reader{ .left = value.cbor };
        const head = r.open();
        if (head.major > 1 or head.number >> 63 != 0) return null;
        const n: i64 = @intCast(head.number);
        return if (head.major == 1) -1 - n else n;
    }

    pub fn is(value: Value, other: []const u8) bool {
        return same(value.text() orelse return false, other);
    }

    fn child(value: Value, name: []const u8) ?Value {
        if (value.cbor.len == 0) return null;
        var r = Reader{ .left = value.cbor };
        const head = r.open();
        if (head.major != 4 and head.major != 5) return null;
        var index: u64 = 0;
        for (name) |c| index = index *% 10 +% (c -% '0');
        for (0..@intCast(head.number)) |i| {
            const found = if (head.major == 4) i == index else r.next().is(name);
            const item = r.next();
            if (found) return item;
        }
        return null;
    }
};

fn same(a: []const u8, b: []const u8) bool {
    if (a.len != b.len) return false;
    for (a, b) |x, y| if (x != y) return false;
    return true;
}

const Reader = struct {
    left: []const u8,

    fn skip(r: *Reader, size: u64) []const u8 {
        if (size > r.left.len) @trap();
        defer r.left = r.left[@intCast(size)..];
        return r.left[0..@intCast(size)];
    }

    fn open(r: *Reader) struct { major: u8, number: u64 } {
        const first = r.skip(1)[0];
        const low = first & 31;
        if (low < 24) return .{ .major = first >> 5, .number = low };
        if (low > 27) @trap();
        var number: u64 = 0;
        for (r.skip(@as(u64, 1) << @intCast(low - 24))) |b| number = number << 8 | b;
        return .{ .major = first >> 5, .number = number };
    }

    fn next(r: *Reader) Value {
        const from = r.left;
        const head = r.open();
        switch (head.major) {
            2, 3 => _ = r.skip(head.number),
            4, 5 => for (0..@intCast(head.number * (head.major - 3))) |_| {
                _ = r.next();
            },
            else => {},
        }
        return .{ .cbor = from[0 .. from.len - r.left.len] };
    }
};

fn putHead(major: u8, number: u64) void {
    if (number < 24) {
        take(1)[0] = major << 5 | @as(u8, @intCast(number));
    } else putWide(major << 5 | 27, number);
}

fn putWide(first: u8, number: u64) void {
    const to = take(9);
    to[0] = first;
    for (to[1..], 0..) |*b, i| b.* = @truncate(number >> @intCast(56 - 8 * i));
}

fn put(value: anytype) void {
    const T = @TypeOf(value);
    if (T == Value) return if (value.cbor.len == 0) put(null) else @memcpy(take(value.cbor.len), value.cbor);
    switch (@typeInfo(T)) {
        .int, .comptime_int => if (value < 0) putHead(1, @intCast(-1 - @as(i64, value))) else putHead(0, value),
        .float, .comptime_float => putWide(0xfb, @bitCast(@as(f64, value))),
        .bool => putHead(7, if (value) 21 else 20),
        .null => putHead(7, 22),
        .optional => if (value) |v| put(v) else put(null),
        .pointer => {
            const text: []const u8 = value;
            putHead(3, text.len);
            @memcpy(take(text.len), text);
        },
        .@"struct" => |s| {
            const names = comptime std.meta.fieldNames(T);
            putHead(if (s.is_tuple) 4 else 5, names.len);
            inline for (names) |name| {
                if (!s.is_tuple) put(name);
                put(@field(value, name));
            }
        },
        else => @compileError("a message holds no " ++ @typeName(T)),
    }
}

/// Makes a message from a value.
pub fn write(value: anytype) Value {
    const from = used;
    put(value);
    return .{ .cbor = arena[from..used] };
}

/// Calls the host: `try weft.call("state_get", .{"a.path"})`. After error.Host, `failure` holds the
/// error {code, message}.
pub fn call(comptime name: []const u8, request: anytype) error{Host}!Value {
    const import = @extern(*const fn ([*]const u8, usize) callconv(.c) u64, .{ .name = name, .library_name = "weft:v1" });
    const message = write(request).cbor;
    const result = import(message.ptr, message.len);
    const answer = take(result & 0xffff_ffff);
    host.response(answer.ptr, 0, @intCast(answer.len));
    if (result >> 32 == 0) return .{ .cbor = answer };
    failure = .{ .cbor = answer };
    return error.Host;
}

pub var failure: Value = .none;

/// Sends the manifest to the host, in weft_describe.
pub fn describe(manifest: anytype) void {
    const message = write(manifest).cbor;
    host.output(message.ptr, @intCast(message.len));
}

/// Runs a step, in weft_step: `run` receives the step's name and the event, and returns the event
/// to emit.
pub fn step(size: u32, run: fn (name: Value, event: Value) error{Host}!Value) u32 {
    const to = take(size);
    host.input(to.ptr, 0, size);
    const input = Value{ .cbor = to };
    const output = if (run(input.get("0"), input.get("1"))) |event| write(.{ 0, event }) else |_| write(.{ 1, failure });
    host.output(output.cbor.ptr, @intCast(output.cbor.len));
    return @intCast(output.get("0").int().?);
}
