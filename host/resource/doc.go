// Package resource is what workflows may call outside: definitions of resources, as
// the operator's file ([Table]) or a tenant's request has them ([Service]), who may use
// them, and the kinds of them. The kind http makes HTTP requests within a policy; the
// kind llm asks models by such requests. Secrets of tenants are sealed at rest ([Keys]).
//
// It must not know runs, sessions, journals or guests: it is asked whether someone
// may use a resource, and makes a call when it is told to. It is the only package
// that opens connections to the outside for a guest.
//
// # Egress
//
// What a guest asks for is hostile, and so is what the outside answers:
//
//  1. A URL is taken apart and checked whole before anything is looked up: scheme,
//     host, port, path, each in one way of writing only (see [checkURL]).
//  2. A name is resolved once, by the dialer, and every address is checked when it
//     is dialled: private, loopback and other special ranges are refused unless the
//     operator names their network (see [special]).
//  3. Every redirect is checked like a request. Secrets go to origins that the
//     operator has named, and with credentials of the guest only to the one that was
//     asked for.
//  4. Requests and answers are bounded in bytes, decompressed ones, and in time.
//  5. Secrets are added on the way out. They are in no payload and no answer: what
//     echoes them is blotted out, in errors too.
package resource
