// Package extism describes an Extism plugin in terms of steps: which export is which
// step, how an event becomes the bytes that an export reads, and how the bytes that the
// export writes become events.
//
// An Extism plugin is a module that imports functions of [HostModule] and does not
// describe itself. Its manifest is a custom section of the module ([abi.SectionManifest])
// that declares its steps. The manifest is JSON, with the names of a module's own
// manifest and some more, all of them optional.
//
// The package only computes. It must not depend on how a guest runs, what serves its
// imports, or how an upload is stored.
package extism
