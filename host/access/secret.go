package access

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// A key looks like weft_TENANT_SECRET. The tenant's name tells its owner what the key is
// for, weft_ lets scanners recognise leaked keys, and the secret has 256 random bits. The
// first 36 of these bits are shown, so that people can tell their keys apart.
const (
	keyBegin    = "weft_"
	secretBytes = 32
	secretChars = 43 // of base64url
	shownChars  = 6
	maxKeyChars = len(keyBegin) + 64 + 1 + secretChars
)

// newSecret draws a key for a tenant.
func newSecret(tenant string) (secret, prefix string) {
	var random [secretBytes]byte
	_, _ = rand.Read(random[:]) // never fails: the process would end instead
	secret = keyBegin + tenant + "_" + base64.RawURLEncoding.EncodeToString(random[:])
	prefix, _ = prefixOf(secret)
	return secret, prefix
}

// prefixOf returns the part of a key that may be shown; false if the text is not a key.
func prefixOf(secret string) (string, bool) {
	at := len(secret) - secretChars
	if len(secret) > maxKeyChars || at < len(keyBegin)+2 || !strings.HasPrefix(secret, keyBegin) || secret[at-1] != '_' {
		return "", false
	}
	return secret[:at+shownChars], true
}

// newID draws the id of a key.
func newID() string {
	var random [8]byte
	_, _ = rand.Read(random[:])
	return "key_" + hex.EncodeToString(random[:])
}
