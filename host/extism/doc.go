// Package extism says what an Extism plugin is in terms of steps: which of its
// exports is which step, how an event becomes the bytes that an export reads,
// and how the bytes that it leaves become events.
//
// An Extism plugin is a module that imports functions of [HostModule], and
// describes nothing itself. Its manifest is a custom section of the module
// ([abi.SectionManifest]) and says what its steps are: JSON, with the names of a
// module's own manifest and a few more, every one of them with a default.
//
// The package computes and does nothing else. It must not know how a guest runs,
// what serves its imports, or how an upload is stored.
package extism
