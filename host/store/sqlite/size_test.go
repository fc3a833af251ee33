package sqlite

import "github.com/weftrun/weft/host/hosttest/suite"

// few: tests play some of their seeds, modules and histories, which is enough to trust
// a change. "make soak" plays all of them, but for what the race detector makes slow.
var few = raced || !suite.Soak()
