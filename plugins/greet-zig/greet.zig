//! greet-zig: two steps in Zig, by the raw ABI. The first counts in the session's state and makes a greeting,
//! the second ends the run with it.
const weft = @import("weft");

export fn weft_describe() void {
    weft.describe(.{
        .abi = 1,
        .workflow = "greet-zig",
        .description = "Greets, and counts the greetings",
        .steps = .{
            .{ .name = "compose", .accepts = .{"StartEvent"}, .emits = .{"GreetingEvent"} },
            .{ .name = "deliver", .accepts = .{"GreetingEvent"}, .emits = .{"StopEvent"} },
        },
        .events = .{
            .StartEvent = .{ .kind = "start", .schema = .{
                .type = "object",
                .required = .{"name"},
                .properties = .{ .name = .{ .type = "string", .description = "whom to greet" } },
            } },
            .GreetingEvent = .{ .schema = .{ .type = "object", .required = .{ "text", "nth" } } },
        },
        .state = .{ .default = .{ .greeted = 0 } },
    });
}

export fn weft_step(size: u32) u32 {
    return weft.step(size, run);
}

fn run(step: weft.Value, event: weft.Value) !weft.Value {
    return if (step.is("compose")) compose(event) else deliver(event);
}

fn compose(event: weft.Value) !weft.Value {
    const counted = try weft.call("state_edit", .{.{ "increment", "greeted", 1 }});
    return weft.write(.{ "GreetingEvent", .{ .text = event.get("1.name"), .nth = counted.get("0") } });
}

fn deliver(event: weft.Value) !weft.Value {
    _ = try weft.call("log", .{ 0, "delivering", .{ .to = event.get("1.text") } });
    return weft.write(.{ "StopEvent", .{ .result = .{ .hello = event.get("1.text"), .greeted = event.get("1.nth") } } });
}
