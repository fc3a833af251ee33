// Package resource implements the external resources of workflows: their definitions,
// from the operator's file ([Table]) or from tenants' requests ([Service]), who may use
// them, and their kinds. The kind http makes HTTP requests within a policy; the kind llm
// calls language models by such requests; the kind kv stores values by key. Secrets of
// tenants are sealed at rest ([Keys]).
//
// The package must not depend on runs, sessions, journals or guests. It decides whether a
// user may use a resource, and makes calls on request. It is the only package that opens
// connections to the outside for a guest.
//
// # Egress
//
// Requests of guests are hostile, and so are answers from the outside:
//
//  1. A URL is parsed and checked as a whole before its name is resolved: scheme, host,
//     port and path, each in exactly one accepted notation (see [checkURL]).
//  2. A name is resolved once, by the dialer, and every address is checked when it is
//     dialed. Private, loopback and other special ranges are refused unless the operator
//     names their network (see [special]).
//  3. Every redirect is checked like a request. Only origins that the operator has named
//     receive secrets. A request with the guest's own credentials sends them only to the
//     requested origin.
//  4. Requests and answers are bounded in bytes, also after decompression, and in time.
//  5. Secrets are added to requests on their way out. No payload and no answer contains
//     them: an echoed secret is blotted out, in errors too.
package resource
