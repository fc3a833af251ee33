package js_test

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"hash"
	"regexp"
	"strings"
)

// wholeFloat finds whole floats in diagnostic notation.
var wholeFloat = regexp.MustCompile(`(-?\b[0-9]+)\.0\b`)

// hashes is what the script of TestHashes gives, as JSON.
func hashes() string {
	var all []string
	add := func(b []byte) { all = append(all, hex.EncodeToString(b)[:16]) }
	sum := func(h func() hash.Hash, b []byte) []byte {
		s := h()
		s.Write(b)
		return s.Sum(nil)
	}
	kinds := []func() hash.Hash{sha1.New, sha256.New, sha512.New384, sha512.New}
	for _, text := range []string{"abc", ""} {
		for _, h := range kinds {
			add(sum(h, []byte(text)))
		}
	}
	for _, n := range []int{55, 56, 63, 64, 65, 111, 112, 127, 128, 1000} {
		add(sum(sha256.New, []byte(strings.Repeat("a", n))))
		add(sum(sha512.New, []byte(strings.Repeat("a", n))))
	}
	mac := func(h func() hash.Hash, key, text string) {
		m := hmac.New(h, []byte(key))
		m.Write([]byte(text))
		add(m.Sum(nil))
	}
	mac(sha256.New, "key", "The quick brown fox jumps over the lazy dog")
	mac(sha512.New, strings.Repeat("\x01", 200), "x")
	mac(sha1.New, "key", "")
	text, _ := json.Marshal(all)
	return string(text)
}
