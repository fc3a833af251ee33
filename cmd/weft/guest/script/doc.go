// Package script builds a module of a project in TypeScript or JavaScript: it bundles the
// sources to one script, and puts the script into an engine that runs scripts.
//
// It must not know what a step is, and talks to no server.
package script
