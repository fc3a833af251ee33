// Package confine takes resources and privileges from the calling process for good, so
// that hostile input can do little harm in it: memory, CPU time, files, programs and the
// network. It knows nothing of modules.
package confine
