// Package state is the session state: an immutable JSON-like tree with
// structural sharing, the dotted paths that address it, the atomic batches of
// edits that change it, the resolved changes that the journal keeps, and the
// subset of JSON Schema that types it.
//
// # Shape
//
// A [Node] never changes. Its containers are persistent B+ trees:
// maps are ordered by canonical key, lists by position, and one structure
// serves both. An edit copies one page on each level of its path and shares the
// rest, so its cost follows what it touches, not the size of the state; a
// snapshot is a pointer; and encoding needs no sorting. There is no hash
// and hence nothing to collide.
//
// # Identity
//
// Whoever opens an edit remembers the node at its path. As long as [Get] gives
// the same pointer, nothing at or below the path has another value. Every
// operation therefore keeps the pointers of what is not at, above or below the
// path it changes, and of everything when it is told to write what is there. The
// operations that compare, merge or fill in (all but the edit "set") also keep
// the equal parts below the path.
//
// # Edits and changes
//
// A request ([abi.Edit]) is resolved against the tree at hand into a [Change]:
// real keys, real indices, the new value. Only changes are stored. [Fold]
// applies them again without knowing what was asked, which schema held or what
// the defaults were, and gives the same tree.
//
// The package must not know who asks or where the tree is kept: it does no I/O,
// takes no context and no lock, reads no clock and draws no random number. All
// its functions may be called by any number of goroutines at once. What it is
// given may be hostile: input is checked, work is proportional to the bytes
// given and failures are errors with a code of package abi.
package state
