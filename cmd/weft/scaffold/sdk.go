package scaffold

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// SDKFolder is the folder of the SDK in a project.
const SDKFolder = "sdk"

// sumFile lists the files of a project's SDK and their hashes in the format of sha256sum,
// below a line with the version of weft that wrote them. It distinguishes a change by a
// user from an older SDK.
const sumFile = "weft-sdk.sum"

// ErrNoSDK is returned for a project without a folder sdk.
var ErrNoSDK = errors.New("the project has no folder " + SDKFolder)

// SDK compares the SDK of a project with the SDK in this program. Paths are
// slash-separated, relative to the folder sdk, and sorted.
type SDK struct {
	From string // the version of weft that wrote the SDK; "": unknown

	Changed []string // files that differ from this program's
	Added   []string // files that only this program has
	Removed []string // files that this program no longer has
	Edited  []string // files that the user has changed in the project, possibly also in Changed or Removed
	Foreign []string // files that no weft has written

	dir   string
	fresh map[string][]byte
}

// Same reports whether the project has this program's SDK.
func (s *SDK) Same() bool { return len(s.Changed)+len(s.Added)+len(s.Removed) == 0 }

// sdkFiles returns the files of a language's SDK by their path in a project, with the
// list of their hashes.
func sdkFiles(language, version string) (map[string][]byte, error) {
	files := map[string][]byte{}
	if err := (Project{Name: "project", Language: language}).addSDK(files); err != nil {
		return nil, err
	}
	maps.DeleteFunc(files, func(name string, _ []byte) bool { return !strings.HasPrefix(name, SDKFolder+"/") })
	addSums(files, version)
	return files, nil
}

// addSums adds the list of the SDK's files to a project's files.
func addSums(files map[string][]byte, version string) {
	var list bytes.Buffer
	_, _ = fmt.Fprintf(&list, "# The SDK of weft %s. 'weft sdk update' renews this folder; do not change files here.\n", cmp.Or(version, "dev"))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if inside, ok := strings.CutPrefix(name, SDKFolder+"/"); ok {
			_, _ = fmt.Fprintf(&list, "%s  %s\n", hashOf(files[name]), inside)
		}
	}
	files[SDKFolder+"/"+sumFile] = list.Bytes()
}

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// CompareSDK compares the SDK of the project in dir, in one of [Languages], with this
// program's.
//
// # Errors
//
// [ErrNoSDK], [ErrNotPacked], and errors from reading files.
func CompareSDK(dir, language, version string) (*SDK, error) {
	fresh, err := sdkFiles(language, version)
	if err != nil {
		return nil, err
	}
	s := &SDK{dir: filepath.Join(dir, SDKFolder), fresh: map[string][]byte{}}
	for name, text := range fresh {
		s.fresh[strings.TrimPrefix(name, SDKFolder+"/")] = text
	}
	have, err := s.read()
	if err != nil {
		return nil, err
	}
	was := s.readSums(have[sumFile])
	for name, text := range have {
		if name != sumFile {
			s.place(name, hashOf(text), was)
		}
	}
	for name := range s.fresh {
		if _, there := have[name]; !there && name != sumFile {
			s.Added = append(s.Added, name)
		}
	}
	for _, list := range []*[]string{&s.Changed, &s.Added, &s.Removed, &s.Edited, &s.Foreign} {
		slices.Sort(*list)
	}
	return s, nil
}

// read reads the existing files.
func (s *SDK) read() (map[string][]byte, error) {
	have := map[string][]byte{}
	err := filepath.WalkDir(s.dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(s.dir, name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (inside == "target" || strings.HasPrefix(d.Name(), ".")): // folders of cargo and git
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		have[filepath.ToSlash(inside)], err = os.ReadFile(name)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoSDK
	}
	return have, err
}

// readSums reads the list of hashes. The list may be missing, because early SDKs had
// none.
func (s *SDK) readSums(list []byte) map[string]string {
	was := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(list)); lines.Scan(); {
		if from, ok := strings.CutPrefix(lines.Text(), "# The SDK of weft "); ok {
			s.From, _, _ = strings.Cut(from, ". ")
			continue
		}
		if sum, name, ok := strings.Cut(lines.Text(), "  "); ok {
			was[name] = sum
		}
	}
	return was
}

// place assigns a file of the project to the lists.
func (s *SDK) place(name, sum string, was map[string]string) {
	text, ours := s.fresh[name]
	before, known := was[name]
	same := ours && sum == hashOf(text)
	switch {
	case same:
		return
	case known && sum != before:
		s.Edited = append(s.Edited, name)
	case !ours && !known && (len(was) > 0 || !s.besideOurs(name)):
		s.Foreign = append(s.Foreign, name)
		return
	}
	if ours {
		s.Changed = append(s.Changed, name)
	} else {
		s.Removed = append(s.Removed, name)
	}
}

// besideOurs reports whether the SDK has files in the same folder as the file. If the
// project has no list of hashes, an older SDK wrote such a file.
func (s *SDK) besideOurs(name string) bool {
	for other := range s.fresh {
		if path.Dir(other) == path.Dir(name) {
			return true
		}
	}
	return false
}

// Update writes this program's SDK into the project, and removes files that it no longer
// has. It does not touch files that are the same, so that they are not built again. It
// also leaves alone files outside the folder, and files that no weft has written. If an
// update is interrupted, the next update completes it.
func (s *SDK) Update() error {
	for _, name := range append(slices.Clone(s.Changed), s.Added...) {
		if err := s.write(name); err != nil {
			return err
		}
	}
	for _, name := range s.Removed {
		file := filepath.Join(s.dir, filepath.FromSlash(name))
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		_ = os.Remove(filepath.Dir(file)) // if it is now empty
	}
	return s.write(sumFile)
}

func (s *SDK) write(name string) error {
	file := filepath.Join(s.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", s.fresh[name], 0o666); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// replaced matches the modules that a go.mod takes from the folder sdk.
var replaced = regexp.MustCompile(`(?m)^\s*(?:replace\s+)?(\S+) => \./` + SDKFolder + `/(\S+)$`)

// GoModLacks lists the arguments of 'go mod edit' that a Go project's go.mod needs for
// this program's SDK: they add modules of the SDK that go.mod does not take from the
// folder. Update does not change go.mod, because it belongs to the project.
func GoModLacks(gomod []byte) ([]string, error) {
	files := map[string][]byte{}
	if err := addPacked("project", files); err != nil {
		return nil, err
	}
	has := map[string]bool{}
	for _, m := range replaced.FindAllSubmatch(gomod, -1) {
		has[string(m[1])] = true
	}
	var lacks []string
	for _, m := range replaced.FindAllSubmatch(files["go.mod"], -1) {
		if module := string(m[1]); !has[module] {
			lacks = append(lacks, "-replace="+module+"=./"+SDKFolder+"/"+string(m[2]))
		}
	}
	return lacks, nil
}

// Older reports whether a version is older than another; ok is false if they cannot be
// compared, such as versions of builds between two releases.
func Older(version, than string) (older, ok bool) {
	a, okA := numbers(version)
	b, okB := numbers(than)
	return slices.Compare(a, b) < 0, okA && okB && !slices.Equal(a, b)
}

var released = regexp.MustCompile(`^v?(\d+)\.(\d+)\.(\d+)$`)

func numbers(version string) (list []int, ok bool) {
	m := released.FindStringSubmatch(version)
	if m == nil {
		return nil, false
	}
	for _, digits := range m[1:] {
		n, err := strconv.Atoi(digits)
		if err != nil {
			return nil, false
		}
		list = append(list, n)
	}
	return list, true
}
