package engine

import "github.com/weftrun/weft/host/hosttest/suite"

// few: tests play only some of their seeds, modules and histories, which is enough for a
// change. "make soak" plays all of them, except for what the race detector makes slow.
var few = raced || !suite.Soak()
