package screen

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Long work shows what is done, its rate and the time that is left: on a terminal each
// tenth of a second, elsewhere each ten seconds. A copy that continues does not count what
// an earlier command did.
func TestBar(t *testing.T) {
	for name, c := range map[string]struct {
		live bool
		want string
	}{
		"terminal": {true, "\r\x1b[Krows: 500 of 2500 (20%)" +
			strings.Join([]string{"",
				"rows: 1000 of 2500 (40%), 50 a second, 30s left",
				"rows: 1500 of 2500 (60%), 50 a second, 20s left",
				"rows: 2000 of 2500 (80%), 50 a second, 10s left",
				"rows: 2500 of 2500 (100%), 50 a second",
				"verifying ...", "verifying: 9"}, "\r\x1b[K") + "\r\x1b[K"},
		"elsewhere": {false, `rows: 1000 of 2500 (40%), 50 a second, 30s left
rows: 1500 of 2500 (60%), 50 a second, 20s left
rows: 2000 of 2500 (80%), 50 a second, 10s left
rows: 2500 of 2500 (100%), 50 a second
`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var shown strings.Builder
				bar := NewBar(&shown)
				bar.live = c.live
				for done := 500; done <= 2500; done += 500 {
					bar.Show("rows", done, 2500)
					bar.Show("rows", done+1, 2500) // too soon
					if done < 2500 {
						time.Sleep(10 * time.Second)
					}
				}
				bar.Show("verifying", 0, 0)
				time.Sleep(progressEvery)
				bar.Show("verifying", 9, 0)
				bar.Clear()
				bar.Clear()
				if got := shown.String(); got != c.want {
					t.Errorf("shown:\n%q\nwant:\n%q", got, c.want)
				}
			})
		})
	}
}
