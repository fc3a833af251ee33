// Package script builds a module of a project in TypeScript, JavaScript or Python: it
// bundles the sources, and puts the bundle into an engine that runs them.
//
// It must not know what a step is, and talks to no server.
package script
