// Package memory lends the linear memories of WebAssembly instances, and brings
// an instance's memory back to what it was.
//
// It must not know what runs in a memory: no module, guest, call or tenant.
package memory
