// Package jsonschema evaluates JSON Schema 2020-12 on a meter: on encoded values, and on
// trees of values in memory. The same schema, value and prices give the same units on
// every machine.
//
// The package does not read schemas: package draft2020 does with a library, and host/state
// reads schemas of states, which have fewer keywords. The library does not evaluate,
// because its evaluation has no bounds: a schema of some hundred bytes can run for ever, a
// body of some megabytes can give millions of errors, and each look at a text copies it.
//
// Numbers are equal if their values are, so 1 equals 1.0, and a whole float is an
// integer. In an encoded value a byte string is what it is in JSON, an object with the
// field $bytes. In a tree a byte string is of the type "string": its length counts bytes,
// and no pattern matches it. Patterns are those of package pattern.
//
// The package must not know what the values are (bodies of events, states) nor who pays
// for the units. It does no I/O, takes no lock, reads no clock and draws no random number.
package jsonschema
