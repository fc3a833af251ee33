/* greet-c: two steps in C, by the raw ABI. The first counts in the session's state and makes a greeting, the
 * second ends the run with it. */
#include "weft.h"

WEFT_EXPORT(weft_describe) void weft_describe(void) {
	weft_value manifest = weft_write(
		"{'abi': 1, 'workflow': 'greet-c', 'description': 'Greets, and counts the greetings',"
		" 'steps': [{'name': 'compose', 'accepts': ['StartEvent'], 'emits': ['GreetingEvent']},"
		"           {'name': 'deliver', 'accepts': ['GreetingEvent'], 'emits': ['StopEvent']}],"
		" 'events': {'StartEvent': {'kind': 'start', 'schema': {'type': 'object', 'required': ['name'],"
		"                'properties': {'name': {'type': 'string', 'description': 'whom to greet'}}}},"
		"            'GreetingEvent': {'schema': {'type': 'object', 'required': ['text', 'nth']}}},"
		" 'state': {'default': {'greeted': 0}}}");
	weft_output(manifest.at, manifest.size);
}

static uint32_t compose(weft_value event) {
	weft_value counted = weft_state_edit(weft_write("[['increment', 'greeted', 1]]"));
	if (weft_status) return weft_return(weft_write("[1, %v]", counted)); /* the host's error is the step's */
	return weft_return(weft_write("[0, ['GreetingEvent', {'text': %v, 'nth': %v}]]",
		weft_get(event, "1.name"), weft_get(counted, "0")));
}

static uint32_t deliver(weft_value event) {
	weft_log(weft_write("[0, 'delivering', {'to': %v}]", weft_get(event, "1.text")));
	return weft_return(weft_write("[0, ['StopEvent', {'result': {'hello': %v, 'greeted': %v}}]]",
		weft_get(event, "1.text"), weft_get(event, "1.nth")));
}

WEFT_EXPORT(weft_step) uint32_t weft_step(uint32_t size) {
	weft_value input = weft_read(size), event = weft_get(input, "1");
	weft_value step = weft_get(input, "0");
	if (weft_is(step, "compose", 0)) return compose(event);
	if (weft_is(step, "deliver", 0)) return deliver(event);
	return weft_return(weft_write("[1, {'code': 'unknown_step', 'message': %v}]", step));
}
